//go:build unix

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

// stopOrphan stops a server that a dead process has left running in d, and waits until it has ended or ctx ends. If
// the process ID file names another process, it removes the file, which PostgreSQL would take for a running server.
// The caller must have claimed d.
func (d *dataDir) stopOrphan(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for asked := false; ; {
		pid, err := d.postmaster()
		if err != nil || pid == 0 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return err
		}
		serves, err := d.serves(pid)
		if err != nil {
			return err
		}
		if !serves {
			return d.removePIDFiles()
		}
		if !asked {
			if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stopping the orphaned server in %s (process %d): %w", d.dir, pid, err)
			}
			asked = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the orphaned server in %s (process %d) does not stop: %w",
				d.dir, pid, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// postmaster returns the process ID in the data directory, 0 for none.
func (d *dataDir) postmaster() (pid int, err error) {
	text, err := os.ReadFile(filepath.Join(d.pgData(), "postmaster.pid"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if pid, err = strconv.Atoi(line); err != nil || pid <= 1 {
		return 0, nil // being written, or damaged by a crash: PostgreSQL handles it
	}
	return pid, nil
}

// serves reports whether process pid is a server on the data of d.
func (d *dataDir) serves(pid int) (bool, error) {
	line, err := commandLine(pid)
	return strings.Contains(line, "/postgres -D "+d.pgData()+" "), err
}

// removePIDFiles removes the files that contain the process ID of a server.
func (d *dataDir) removePIDFiles() error {
	for _, path := range []string{
		filepath.Join(d.pgData(), "postmaster.pid"),
		filepath.Join(d.socketDir(), socketName+".lock"),
	} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
