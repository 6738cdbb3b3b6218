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

// openTemporary claims a new directory for as long as this process lives, and
// removes those that dead processes have left behind.
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
		return nil, fmt.Errorf("removing what an earlier server left behind: %w", err)
	}
	for ctx.Err() == nil {
		dir, err := os.MkdirTemp(base, temporaryPrefix+"*")
		if err != nil {
			return nil, err
		}
		lock, err := claim(dir)
		if errors.Is(err, ErrInUse) {
			continue // a sweep was quicker than our claim
		}
		if err := errors.Join(err, a.chown(dir)); err != nil {
			return nil, err
		}
		return &dataDir{dir: dir, account: a, temporary: true, claim: lock}, nil
	}
	return nil, context.Cause(ctx)
}

// temporaryBase is $TMPDIR, or /tmp where a cannot get there.
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

// sweep removes the temporary directories under base that nobody claims.
func sweep(ctx context.Context, base string, a account) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || !strings.HasPrefix(entry.Name(), temporaryPrefix) {
			continue // not one of ours, or gone
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
		return nil // somebody has it, or is about to
	case errors.Is(err, fs.ErrPermission):
		return nil // root's, who runs its servers as a, too
	}
	if err != nil {
		return err
	}
	h := &dataDir{dir: dir, account: a, temporary: true, claim: lock}
	return errors.Join(h.stopOrphan(ctx), h.close())
}
