//go:build unix

package pgserver

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// An account is the user that the server runs as.
type account struct {
	name     string
	uid, gid uint32
	switches bool // this process is root and runs the server as another user
}

// accountFor returns the account for a server on the data directory, which need not exist: the current user or, for
// root, the owner of the data, else unprivilegedUser. PostgreSQL refuses to run as root.
func accountFor(data string) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{name: "user " + strconv.Itoa(uid), uid: uint32(uid), gid: uint32(os.Getegid())}, nil
	}
	info, err := os.Stat(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return account{}, err
	}
	if err == nil {
		if uid, gid := owner(info); uid != 0 {
			return account{name: "user " + strconv.Itoa(int(uid)), uid: uid, gid: gid, switches: true}, nil
		}
	}
	return unprivilegedUser()
}

// unprivilegedUser returns the user that a server started by root runs as.
func unprivilegedUser() (account, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue // no such user here
		}
		uid, errUID := strconv.ParseInt(u.Uid, 10, 64)
		gid, errGID := strconv.ParseInt(u.Gid, 10, 64)
		if err := errors.Join(errUID, errGID); err != nil {
			return account{}, fmt.Errorf("user %s: %w", name, err)
		}
		return account{name: "user " + name, uid: uint32(uid), gid: uint32(gid), switches: true}, nil
	}
	return account{}, errors.New(
		"PostgreSQL does not run as root, and this system has no user postgres or nobody; create one",
	)
}

func owner(info fs.FileInfo) (uid, gid uint32) {
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Uid, stat.Gid
}

// credential returns the credential for a child process, nil for the current user.
func (a account) credential() *syscall.Credential {
	if !a.switches {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// mkdir creates a directory that only a can enter, unless it exists.
func (a account) mkdir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.chown(dir)
}

// chown makes a the owner of path.
func (a account) chown(path string) error {
	if !a.switches {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// checkAccess returns an error if a cannot enter dir or a parent of dir that exists. It checks the permission bits
// only.
func (a account) checkAccess(dir string) error {
	if !a.switches {
		return nil // the system calls return the error
	}
	for {
		info, err := os.Stat(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && !a.canEnter(info) {
			return fmt.Errorf("the server runs as %s, which cannot enter %s (%v): choose another directory, "+
				"or allow access with: chmod o+x %s", a.name, dir, info.Mode(), dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}

func (a account) canEnter(dir fs.FileInfo) bool {
	uid, gid := owner(dir)
	switch mode := dir.Mode(); {
	case uid == a.uid:
		return mode&0o100 != 0
	case gid == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
