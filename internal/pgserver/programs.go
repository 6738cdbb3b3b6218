//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// major returns the PostgreSQL version of the data directory, "" if there is none.
func (d *dataDir) major() (string, error) {
	version, err := os.ReadFile(filepath.Join(d.pgData(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(version)), err
}

// initialise creates the data directory atomically. It removes the remains of an interrupted attempt.
func (d *dataDir) initialise(ctx context.Context, bin string) error {
	fresh := d.pgData() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := d.account.mkdir(fresh); err != nil {
		return err
	}
	cmd := d.command(bin, "initdb", syscall.SIGKILL,
		"--pgdata="+fresh, "--username="+superuser, "--encoding=UTF8", "--locale=C",
		"--auth-local=trust", "--auth-host=reject", "--data-checksums", "--no-sync")
	p, err := start(cmd, nil)
	if err != nil {
		return err
	}
	select {
	case <-p.exited:
	case <-ctx.Done():
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-p.exited
		return errors.Join(context.Cause(ctx), err)
	}
	if p.err != nil {
		return fmt.Errorf("initdb: %w\n%s", p.err, p.log)
	}
	return os.Rename(fresh, d.pgData())
}

// serve returns the command that runs the server.
func (d *dataDir) serve(bin string, settings map[string]string) *exec.Cmd {
	args := []string{"-D", d.pgData()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	// Last, so that no setting opens a port or moves the socket.
	args = append(args, "-c", "listen_addresses=", "-c", "port=5432",
		"-c", `unix_socket_directories="`+strings.ReplaceAll(d.socketDir(), `"`, `""`)+`"`)
	return d.command(bin, "postgres", syscall.SIGINT, args...)
}

// command returns a command that runs a server program as the server's account. On Linux it receives the signal died
// if this process ends first.
func (d *dataDir) command(bin, program string, died syscall.Signal, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, program), args...)
	cmd.Dir = d.dir
	cmd.SysProcAttr = attributes(d.account, died)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "LC_")
	})
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}
