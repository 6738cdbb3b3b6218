//go:build unix

package pgserver

import (
	"bytes"
	"cmp"
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

// A docker is the path of Docker's command line; empty for the one in the PATH.
type docker string

// command returns a command of the command line.
func (d docker) command(ctx context.Context, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, cmp.Or(string(d), "docker"), args...)
}

// run runs a command and returns its output.
func (d docker) run(ctx context.Context, args ...string) (string, error) {
	return d.runWith(ctx, nil, args...)
}

// runWith runs a command with further environment variables, which, unlike arguments, other users cannot see.
func (d docker) runWith(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := d.command(ctx, args...)
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

// check returns an error unless this machine runs a Docker that this user may use.
func (d docker) check(ctx context.Context) error {
	if _, err := exec.LookPath(cmp.Or(string(d), "docker")); err != nil {
		return errors.New("it is not installed")
	}
	ctx, cancel := context.WithTimeout(ctx, dockerTimeout)
	defer cancel()
	host, err := d.run(ctx, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	if err != nil {
		return err
	}
	if !strings.HasPrefix(host, "unix:") {
		return fmt.Errorf("it runs on another machine, at %s", host)
	}
	_, err = d.run(ctx, "version", "--format", "{{.Server.Version}}")
	return err
}
