//go:build unix

package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openWithoutWaiting is the flag with which opening a named pipe does not wait for a writer.
const openWithoutWaiting = unix.O_NONBLOCK

func lockExclusively(folder *os.File) error {
	for {
		if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writableByAll reports whether every user of the machine may change the file.
func writableByAll(info fs.FileInfo) bool { return info.Mode().Perm()&0o002 != 0 }

// syncFolder makes the names in the folder durable.
func syncFolder(folder *os.File) error { return folder.Sync() }

// copyOwner gives f the owner and group of the file at path.
func copyOwner(f *os.File, path string, info fs.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	if ok && (int(owner.Uid) != os.Geteuid() || int(owner.Gid) != os.Getegid()) {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("%w: change %s as its owner, or as root", err, path)
		}
	}
	return nil
}
