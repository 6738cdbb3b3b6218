//go:build unix

package usercache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A Folder keeps fetched programs, an entry each. The zero Folder has no entries, and none can be added.
type Folder struct {
	Path string
}

// Default returns the folder of the current user, which need not exist: paddock in the user's cache folder. For root
// it is a folder that every account can enter, because PostgreSQL does not run as root and /root is closed. Without a
// home it is the zero Folder.
func Default() Folder {
	if os.Geteuid() == 0 {
		return Folder{Path: "/var/cache/paddock"}
	}
	base, err := os.UserCacheDir()
	if err != nil {
		return Folder{}
	}
	return Folder{Path: filepath.Join(base, "paddock")}
}

// Entries returns the paths of the complete entries whose names match a pattern of path/filepath, sorted.
func (f Folder) Entries(pattern string) []string {
	var found []string
	for _, path := range f.glob(pattern) {
		if info, err := os.Stat(path); err == nil && info.IsDir() && !strings.HasPrefix(filepath.Base(path), partial) {
			found = append(found, path)
		}
	}
	return found
}

// partial is the prefix of entries that are being filled.
const partial = "partial-"

// A Writer may add entries to a folder. One exists at a time.
type Writer struct {
	folder Folder
	lock   *os.File
}

// Lock creates the folder and waits until no other process, or Writer of this process, writes to it. It removes what
// an interrupted one has left behind. Close ends the Writer, as does the end of the process.
func (f Folder) Lock(ctx context.Context) (*Writer, error) {
	if f.Path == "" {
		return nil, errors.New("there is no cache folder: set HOME")
	}
	if err := os.MkdirAll(f.Path, 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(f.Path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Writer{folder: f, lock: lock}
	err = await(ctx, lock)
	if err == nil {
		err = w.sweep()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return w, nil
}

// await locks the file. It asks repeatedly, because a blocked flock cannot be interrupted.
func await(ctx context.Context, file *os.File) error {
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for another process that fetches: %w", context.Cause(ctx))
		case <-retry.C:
		}
	}
}

func (w *Writer) sweep() error {
	var errs []error
	for _, path := range w.folder.glob(partial + "*") {
		errs = append(errs, os.RemoveAll(path))
	}
	return errors.Join(errs...)
}

func (f Folder) glob(pattern string) []string {
	if f.Path == "" {
		return nil
	}
	paths, err := filepath.Glob(filepath.Join(f.Path, pattern))
	if err != nil {
		panic(fmt.Sprintf("usercache: %s: %v", pattern, err)) // the pattern is a constant
	}
	return paths
}

// Add adds an entry that fill makes in an empty directory, and returns its path. If fill fails, nothing is added. An
// entry with the same name is replaced.
func (w *Writer) Add(name string, fill func(dir string) error) (path string, err error) {
	dir, err := os.MkdirTemp(w.folder.Path, partial)
	if err != nil {
		return "", err
	}
	path = filepath.Join(w.folder.Path, name)
	if err = os.Chmod(dir, 0o755); err == nil {
		err = fill(dir)
	}
	if err == nil {
		err = os.RemoveAll(path)
	}
	if err == nil {
		err = os.Rename(dir, path)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return path, nil
}

// Close lets the next process write.
func (w *Writer) Close() error {
	// Without the first step a child of this process that is just being started would share the lock.
	return errors.Join(syscall.Flock(int(w.lock.Fd()), syscall.LOCK_UN), w.lock.Close())
}
