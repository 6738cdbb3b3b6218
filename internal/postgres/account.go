package postgres

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
	switches bool // it is not ourselves: we are root
}

// accountFor returns the account for a server on the data directory given,
// which need not exist: ourselves, or for root, as whom PostgreSQL refuses to
// run, the owner of the data, else postgres, else nobody.
func accountFor(data string) (account, error) {
	if uid := os.Geteuid(); uid != 0 {
		return account{name: "user " + strconv.Itoa(uid), uid: uint32(uid), gid: uint32(os.Getegid())}, nil
	}
	info, err := os.Stat(data)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return account{}, err
	}
	if err == nil {
		uid, gid := owner(info)
		return account{name: fmt.Sprintf("user %d, who owns %s,", uid, data), uid: uid, gid: gid, switches: true}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseInt(u.Uid, 10, 64)
		gid, errGID := strconv.ParseInt(u.Gid, 10, 64)
		if err := errors.Join(errUID, errGID); err != nil {
			return account{}, fmt.Errorf("user %s: %w", name, err)
		}
		return account{name: "user " + name, uid: uint32(uid), gid: uint32(gid), switches: true}, nil
	}
	return account{}, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor a user nobody to run it as")
}

func owner(info fs.FileInfo) (uid, gid uint32) {
	stat := info.Sys().(*syscall.Stat_t)
	return stat.Uid, stat.Gid
}

// credential is what a child needs to run as a, nil when it does anyway.
func (a account) credential() *syscall.Credential {
	if !a.switches {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// mkdir makes a directory that only a can enter, unless it is there already.
func (a account) mkdir(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.own(dir)
}

// own gives path, which we have just made, to a.
func (a account) own(path string) error {
	if !a.switches {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// reach says which directory on the way to dir a cannot enter, going by the
// permission bits alone.
func (a account) reach(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !a.enters(info) {
			return fmt.Errorf("the server runs as %s who cannot enter %s (%v): "+
				"choose a directory elsewhere, or let others pass with: chmod o+x %s", a.name, dir, info.Mode(), dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (a account) enters(dir fs.FileInfo) bool {
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
