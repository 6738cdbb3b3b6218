//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const temporaryPrefix = "paddock-postgres-"

// openTemporary claims a new temporary directory, and removes those of dead processes.
func openTemporary(ctx context.Context) (*dataDir, error) {
	a, err := accountFor("")
	if err != nil {
		return nil, err
	}
	base, err := temporaryBase(a)
	if err != nil {
		return nil, err
	}
	if err := sweep(ctx, base, a); err != nil {
		return nil, fmt.Errorf("removing the directories of earlier servers: %w", err)
	}
	for ctx.Err() == nil {
		dir, err := os.MkdirTemp(base, temporaryPrefix+"*")
		if err != nil {
			return nil, err
		}
		lock, err := claim(dir)
		if errors.Is(err, ErrInUse) {
			continue // a concurrent sweep removed it
		}
		if err := errors.Join(err, a.chown(dir)); err != nil {
			return nil, err
		}
		return &dataDir{dir: dir, account: a, temporary: true, claim: lock}, nil
	}
	return nil, context.Cause(ctx)
}

// temporaryBase returns $TMPDIR, or /tmp if a cannot enter that.
func temporaryBase(a account) (string, error) {
	base, err := filepath.EvalSymlinks(os.TempDir())
	if err == nil && a.checkAccess(base) == nil {
		return base, nil
	}
	if base, err = filepath.EvalSymlinks("/tmp"); err != nil {
		return "", err
	}
	return base, a.checkAccess(base)
}

// sweep removes the unclaimed temporary directories in base.
func sweep(ctx context.Context, base string, a account) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), temporaryPrefix) {
			continue // not a temporary directory of a server, or already removed
		}
		if uid, _ := owner(info); uid != a.uid {
			continue
		}
		if err := sweepOne(ctx, filepath.Join(base, entry.Name()), a); err != nil {
			return err
		}
	}
	return nil
}

func sweepOne(ctx context.Context, dir string, a account) error {
	lock, err := reclaim(dir)
	switch {
	case errors.Is(err, ErrInUse), errors.Is(err, fs.ErrNotExist):
		return nil // in use, or about to be claimed
	case errors.Is(err, fs.ErrPermission):
		return nil // claimed by root, which runs its servers as a
	}
	if err != nil {
		return err
	}
	d := &dataDir{dir: dir, account: a, temporary: true, claim: lock}
	if _, e := d.readContainer(); e == nil && docker("").check(ctx) == nil { // without Docker no container runs
		err = d.removeContainer(ctx, "")
	}
	return errors.Join(err, d.stopOrphan(ctx), d.close())
}
