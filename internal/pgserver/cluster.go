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

// major is the version that wrote the data directory, "" when there is none.
func (h *dataDir) major() (string, error) {
	version, err := os.ReadFile(filepath.Join(h.pgData(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(version)), err
}

// initialise makes the data directory. It appears in one piece: what an
// interrupted attempt left is thrown away by the next.
func (h *dataDir) initialise(ctx context.Context, bin string) error {
	fresh := h.pgData() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := h.account.mkdir(fresh); err != nil {
		return err
	}
	cmd := h.command(bin, "initdb", syscall.SIGKILL,
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
	return os.Rename(fresh, h.pgData())
}

// serve is the command that runs the server.
func (h *dataDir) serve(bin string, settings map[string]string) *exec.Cmd {
	args := []string{"-D", h.pgData()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	// Last, so that no setting opens a port or moves the socket.
	args = append(args, "-c", "listen_addresses=", "-c", "port=5432",
		"-c", `unix_socket_directories="`+strings.ReplaceAll(h.socketDir(), `"`, `""`)+`"`)
	return h.command(bin, "postgres", syscall.SIGINT, args...)
}

// command prepares a server program to run as the server's account. It gets
// the signal died when this process ends before it.
func (h *dataDir) command(bin, program string, died syscall.Signal, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(bin, program), args...)
	cmd.Dir = h.dir
	cmd.SysProcAttr = attributes(h.account, died)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "PG") || strings.HasPrefix(v, "LC_")
	})
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return cmd
}
