package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopOrphan ends a server that a dead process has left running in h, and clears
// away the marks of one whose process id has passed to somebody else, which
// PostgreSQL itself would take for a living server. It waits until the server
// is gone or ctx ends. Only who has claimed h may call it.
func (h *dataDir) stopOrphan(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for asked := false; ; {
		pid, err := h.postmaster()
		if err != nil || pid == 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return err
		}
		serves, err := h.serves(pid)
		if err != nil {
			return err
		}
		if !serves {
			return h.removePIDFiles()
		}
		if !asked {
			if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stopping the server that a dead process left in %s (process %d): %w", h.dir, pid, err)
			}
			asked = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server that a dead process left in %s (process %d) does not end: %w", h.dir, pid, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// postmaster reads the process id that the data directory names, 0 for none.
func (h *dataDir) postmaster() (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(h.pgData(), "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if pid, err = strconv.Atoi(line); err != nil || pid <= 1 {
		return 0, nil // being written, or torn by a crash: PostgreSQL judges it
	}
	return pid, nil
}

// serves reports whether process pid is a server on the data of h.
func (h *dataDir) serves(pid int) (bool, error) {
	line, err := commandLine(pid)
	return strings.Contains(line, "/postgres -D "+h.pgData()+" "), err
}

// removePIDFiles removes the files that name the process of a server.
func (h *dataDir) removePIDFiles() error {
	for _, path := range []string{
		filepath.Join(h.pgData(), "postmaster.pid"),
		filepath.Join(h.socketDir(), socketName+".lock"),
	} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
