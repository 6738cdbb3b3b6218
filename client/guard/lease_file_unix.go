//go:build unix

package guard

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile locks the file until it is closed, or this process ends. It reports whether no other one has locked it.
func lockFile(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
