package pgserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// dockerTimeout bounds commands that only ask the daemon.
const dockerTimeout = 10 * time.Second

// docker runs a command of Docker's command line and returns its output.
func docker(ctx context.Context, args ...string) (string, error) {
	return dockerWith(ctx, nil, args...)
}

// dockerWith runs a command with further environment variables, which, unlike arguments, other users cannot see.
func dockerWith(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if said := strings.TrimSpace(errs.String()); said != "" {
			err = errors.New(said)
		}
		return "", fmt.Errorf("docker %s: %w", args[0], err)
	}
	return strings.TrimSpace(out.String()), nil
}

// dockerRuns returns an error unless this machine runs a Docker that this user may use.
func dockerRuns(ctx context.Context) error {
	if _, err := exec.LookPath("docker"); err != nil {
		return errors.New("it is not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	host, err := docker(ctx, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(host, "unix:") {
		return fmt.Errorf("it runs on another machine, at %s", host)
	}
	_, err = docker(ctx, "version", "--format", "{{.Server.Version}}")
	return err
}
