//go:build unix

package pgserver

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	socketName = ".s.PGSQL.5432"
	// longestSocket is the maximum length of a socket path on the strictest system.
	longestSocket = 103
)

// A dataDir is a directory claimed for one server. It contains the PostgreSQL data directory, see pgData.
type dataDir struct {
	dir       string // absolute and without symbolic links
	account   account
	temporary bool
	claim     *os.File
}

func (d *dataDir) pgData() string { return filepath.Join(d.dir, "data") }

// openDataDir claims dir, and creates it if necessary. The error is ErrInUse if another process uses it.
func openDataDir(dir string) (*dataDir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := checkUsable(dir); err != nil {
		return nil, err
	}
	a, err := accountFor(filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	if dir, err = a.makeDir(dir); err != nil {
		return nil, err
	}
	lock, err := claim(dir)
	if err != nil {
		return nil, err
	}
	return &dataDir{dir: dir, account: a, claim: lock}, nil
}

// checkUsable returns an error if dir or one above it is a file, or if its folder data has files that are not those of
// PostgreSQL, which would be in the way. Nothing is changed.
func checkUsable(dir string) error {
	for above := dir; ; above = filepath.Dir(above) {
		info, err := os.Stat(above)
		if err == nil && !info.IsDir() {
			return fmt.Errorf("%s is a file; give a directory, which need not exist", above)
		}
		if err == nil || above == filepath.Dir(above) {
			break
		}
	}
	data := filepath.Join(dir, "data")
	files, err := os.ReadDir(data)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(files) == 0 {
		return nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%s is a file, where the data of PostgreSQL would be; give another directory", data)
	}
	if err != nil {
		return nil // makeDir, or PostgreSQL, says who may not read it
	}
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has files that are not of a PostgreSQL; give another directory, which need not exist", data)
	}
	return nil
}

// makeDir creates dir unless it exists, and returns its path without symbolic links.
func (a account) makeDir(dir string) (string, error) {
	if err := a.checkAccess(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if err := a.mkdir(dir); err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	return dir, a.checkAccess(dir)
}

// close releases the directory, and removes it if it is temporary.
func (d *dataDir) close() error {
	err := os.RemoveAll(d.socketDir())
	if d.temporary {
		err = errors.Join(err, os.RemoveAll(d.dir))
	}
	return errors.Join(err, release(d.claim))
}

// socketDir returns the directory of the socket. It depends only on d.dir, and is in /tmp if the path would be too
// long.
func (d *dataDir) socketDir() string {
	dir := filepath.Join(d.dir, "run")
	if len(filepath.Join(dir, socketName)) <= longestSocket {
		return dir
	}
	return fmt.Sprintf("/tmp/paddock-%d-%x", d.account.uid, sha256.Sum256([]byte(d.dir)))[:40]
}

// makeSocketDir creates the directory of the socket, and checks that only the account can enter it.
func (d *dataDir) makeSocketDir() error {
	dir := d.socketDir()
	if err := d.account.mkdir(dir); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if uid, _ := owner(info); uid != d.account.uid || info.Mode() != fs.ModeDir|0o700 {
		return fmt.Errorf("%s must be a directory with mode 0700 owned by %s: remove it", dir, d.account.name)
	}
	return nil
}
