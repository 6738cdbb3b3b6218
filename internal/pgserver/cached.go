//go:build unix

package pgserver

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// cacheBase is for temporary files that outlive a restart. The temporary directory may be in memory.
const cacheBase = "/var/tmp"

// initialiseCached creates the data directory from a copy of an empty one, which an earlier server of these programs
// has left in cacheBase; if there is none it runs initdb and leaves one. Copies have the same system identifier.
func (d *dataDir) initialiseCached(ctx context.Context, bin string) error {
	cached, err := cachedDir(bin)
	if err != nil {
		return err
	}
	if _, err := os.Stat(cached); errors.Is(err, fs.ErrNotExist) {
		return errors.Join(d.initialise(ctx, bin), leaveCopy(d.pgData(), cached))
	}
	fresh := d.pgData() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := copyTree(cached, fresh, d.account.chown); err != nil {
		return fmt.Errorf("copying %s: %w", cached, err)
	}
	return os.Rename(fresh, d.pgData())
}

// cachedDir returns where the empty data directory of these programs is kept. It checks that no other user made it.
func cachedDir(bin string) (string, error) {
	base := cacheBase
	if _, err := os.Stat(base); err != nil {
		base = os.TempDir()
	}
	program, err := filepath.EvalSymlinks(filepath.Join(bin, "initdb"))
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(fmt.Appendln(nil, program, info.Size(), info.ModTime().UnixNano()))
	dir := filepath.Join(base, fmt.Sprintf("paddock-initdb-%d-%x", os.Geteuid(), key[:6]))
	info, err = os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return "", err
	}
	if uid, _ := owner(info); uid != uint32(os.Geteuid()) || info.Mode() != fs.ModeDir|0o700 {
		return "", fmt.Errorf("%s must be a directory of the current user with mode 0700: remove it", dir)
	}
	return dir, nil
}

// leaveCopy copies the data directory to cached, atomically, unless another process does it first.
func leaveCopy(data, cached string) error {
	fresh, err := os.MkdirTemp(filepath.Dir(cached), filepath.Base(cached)+".new-*")
	if err != nil {
		return err
	}
	inside := filepath.Join(fresh, "data")
	err = copyTree(data, inside, func(string) error { return nil })
	if err == nil {
		err = os.Rename(inside, cached)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(fresh))
}

// copyTree copies a directory that contains directories and files only. Only their owner can read the copies.
func copyTree(from, to string, chown func(path string) error) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		switch {
		case entry.IsDir():
			err = os.Mkdir(target, 0o700)
		case entry.Type().IsRegular():
			err = copyFile(path, target)
		default:
			err = fmt.Errorf("%s is neither a directory nor a file", path)
		}
		return errors.Join(err, chown(target))
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it is only read
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
