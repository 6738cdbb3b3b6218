package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrKeyNotFound says that the auth file has no key with that id.
var ErrKeyNotFound = errors.New("there is no such key")

// Add writes the key into the auth file, which it makes if there is none: mode 0600.
// Replicas see the file as it was or as it is, never half of it, and of two changes at once
// neither is lost. A file that was there keeps its owner, its group, and who of these may
// read it. One in which there is a mistake is left as it is.
func Add(path string, k Key) error {
	if err := k.check(); err != nil {
		return err
	}
	return updateFile(path, func(keys []Key, err error) ([]Key, error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if slices.ContainsFunc(keys, func(other Key) bool { return other.ID == k.ID }) {
			return nil, fmt.Errorf("%s has a key with the id %s already", path, k.ID)
		}
		return append(keys, k), nil
	})
}

// Revoke takes the key with that id out of the auth file and returns it, or
// ErrNoSuchKey. It writes as Add does.
func Revoke(path, id string) (revoked Key, err error) {
	err = updateFile(path, func(keys []Key, err error) ([]Key, error) {
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(keys, func(k Key) bool { return k.ID == id })
		if i < 0 {
			return nil, ErrKeyNotFound
		}
		revoked = keys[i]
		return slices.Delete(keys, i, i+1), nil
	})
	return revoked, err
}

// updateFile has the file hold what edit makes of what it holds, or of the error of reading it.
// Changes exclude each other by a lock on the file's folder, which ends with the process.
func updateFile(path string, edit func([]Key, error) ([]Key, error)) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err := lockExclusively(folder); err != nil {
		return fmt.Errorf("lock %s: %w", folder.Name(), err)
	}
	keys, err := edit(ReadFile(path))
	if err != nil {
		return err
	}
	content, err := render(keys)
	if err != nil {
		return err
	}
	if err := replaceFile(path, content); err != nil {
		return err
	}
	return folder.Sync()
}

func lockExclusively(folder *os.File) error {
	for {
		if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// replaceFile puts another file in the place of the one that there is, if there is one.
func replaceFile(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = copyOwnership(f, path)
	if err == nil {
		_, err = f.Write(content)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// copyOwnership gives f the owner and the group of the file at path, and lets the group read
// it if it may read that.
func copyOwnership(f *os.File, path string) error {
	about, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f.Chmod(0o600)
	}
	if err != nil {
		return err
	}
	if owner, ok := about.Sys().(*syscall.Stat_t); ok && (int(owner.Uid) != os.Geteuid() || int(owner.Gid) != os.Getegid()) {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("%w: change %s as its owner, or as root", err, path)
		}
	}
	return f.Chmod(0o600 | about.Mode().Perm()&0o040)
}
