//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrInUse means that another process, or another Server of this process, uses the directory.
var ErrInUse = errors.New("the directory is in use")

const claimName = "paddock.pid"

// claim locks dir for this process until the returned file is closed. The kernel closes it if the process dies.
func claim(dir string) (*os.File, error) {
	file, err := lock(dir, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	_, err = file.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// reclaim locks a directory that was claimed before. It returns fs.ErrNotExist for one that never was.
func reclaim(dir string) (*os.File, error) {
	return lock(dir, os.O_RDWR)
}

func lock(dir string, flag int) (*os.File, error) {
	path := filepath.Join(dir, claimName)
	file, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = inUse(dir, path)
	case err == nil && !stillAt(path, file):
		err = fmt.Errorf("%w: %s was removed by another process", ErrInUse, dir)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func inUse(dir, path string) error {
	pid, err := os.ReadFile(path)
	if err != nil {
		return errors.Join(ErrInUse, err)
	}
	return fmt.Errorf("%w: process %s runs a server in %s; stop it, or choose another directory",
		ErrInUse, strings.TrimSpace(string(pid)), dir)
}

// release ends the lock of a claimed directory. Closing the file is not enough: a child of this process that is just
// being started shares the lock until it runs its program.
func release(file *os.File) error {
	return errors.Join(syscall.Flock(int(file.Fd()), syscall.LOCK_UN), file.Close())
}

// stillAt reports whether path is the file that is open.
func stillAt(path string, file *os.File) bool {
	there, err := os.Lstat(path)
	if err != nil {
		return false
	}
	here, err := file.Stat()
	return err == nil && os.SameFile(there, here)
}
