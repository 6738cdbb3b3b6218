package pgserver

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	socketName = ".s.PGSQL.5432"
	// longestSocket is how long a socket's path may be where that is shortest.
	longestSocket = 103
)

// A dataDir is a directory claimed for one server.
type dataDir struct {
	dir       string // absolute and without symbolic links
	account   account
	temporary bool
	claim     *os.File
}

func (h *dataDir) pgData() string { return filepath.Join(h.dir, "data") }

// openDataDir claims dir, which is made when it is missing. The error is ErrInUse
// while a living process has it.
func openDataDir(dir string) (*dataDir, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
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

// makeDir makes dir unless it is there, and returns its path without
// symbolic links.
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

// close gives the directory up, and removes it if it was temporary.
func (h *dataDir) close() error {
	err := os.RemoveAll(h.socketDir())
	if h.temporary {
		err = errors.Join(err, os.RemoveAll(h.dir))
	}
	return errors.Join(err, h.claim.Close())
}

// socketDir is where the server's socket is: always the same for one
// directory, and in /tmp where the path would be too long for a socket.
func (h *dataDir) socketDir() string {
	dir := filepath.Join(h.dir, "run")
	if len(filepath.Join(dir, socketName)) <= longestSocket {
		return dir
	}
	return fmt.Sprintf("/tmp/paddock-%d-%x", h.account.uid, sha256.Sum256([]byte(h.dir)))[:40]
}

// makeSocketDir makes sure that nobody else can be in the socket's directory.
func (h *dataDir) makeSocketDir() error {
	dir := h.socketDir()
	if err := h.account.mkdir(dir); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if uid, _ := owner(info); uid != h.account.uid || info.Mode() != fs.ModeDir|0o700 {
		return fmt.Errorf("%s must be a directory (mode 0700) of %s: remove it", dir, h.account.name)
	}
	return nil
}
