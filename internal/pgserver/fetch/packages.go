//go:build unix

package fetch

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/paddock-lock/paddock/internal/debs"
)

// packagesMB is the size of the server with the packages that it needs, and of the lists of packages.
const packagesMB = 70

// fromPackages unpacks the packages of Debian or Ubuntu.
func (s Source) fromPackages(ctx context.Context, wish Wish, dir string) error {
	if err := debs.Check(); err != nil {
		return err
	}
	t := debs.Tree{Dir: dir, Work: filepath.Join(s.Cache.Path, "apt")}
	if err := t.Update(ctx); err != nil {
		return err
	}
	major := wish.Major
	if major == "" {
		var err error
		if major, err = systemMajor(ctx, t); err != nil {
			return err
		}
	}
	if err := t.Unpack(ctx, "postgresql-"+major, "postgresql-client-"+major); err != nil {
		return err
	}
	programs, err := filepath.Glob(filepath.Join(dir, "usr/lib/postgresql", major, "bin/*"))
	if err != nil {
		return err
	}
	for _, path := range programs {
		program, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if err := t.Expose(program); err != nil {
			return err
		}
	}
	return nil
}

// systemMajor returns the version that the package postgresql stands for.
func systemMajor(ctx context.Context, t debs.Tree) (string, error) {
	names, err := t.Depends(ctx, "postgresql")
	if err != nil {
		return "", err
	}
	server := regexp.MustCompile(`^postgresql-(\d+)$`)
	i := slices.IndexFunc(names, server.MatchString)
	if i < 0 {
		return "", fmt.Errorf("the package postgresql of this system names no server (%q)", names)
	}
	return server.FindStringSubmatch(names[i])[1], nil
}
