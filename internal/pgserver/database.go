//go:build unix

package pgserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/paddock-lock/paddock/internal/pgserver/fetch"
)

// Open returns a server that accepts connections: a Server from programs that are installed or were fetched before,
// else a container if Docker runs, else a Server from programs that are fetched. Data that exists is opened the way in
// which it was written. Unlike the result of Start, it cannot be killed and restarted. Context and errors are as for
// Start.
func Open(ctx context.Context, opts Options) (Database, error) {
	db, err := open(ctx, opts, true)
	if err != nil {
		return nil, err
	}
	return db, nil
}

// Start returns a server that accepts connections, from programs that are installed, or are fetched if necessary. ctx
// bounds the start, not the life of the server; there is no other time limit. The error wraps ErrNotFound if there are
// no programs, and ErrInUse if another process uses Dir.
func Start(ctx context.Context, opts Options) (*Server, error) {
	db, err := open(ctx, opts, false)
	if err != nil {
		return nil, err
	}
	return db.(*Server), nil //nolint:forcetypeassert // without Docker there is nothing else
}

// open claims the directory, and starts a server on it.
func open(ctx context.Context, opts Options, mayContain bool) (db Database, err error) {
	f, err := newFinder(opts)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	var dir *dataDir
	if opts.Dir == "" {
		dir, err = openTemporary(ctx)
	} else {
		dir, err = openDataDir(opts.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	if db, err = openIn(ctx, dir, f, opts, mayContain); err != nil {
		return nil, fmt.Errorf("postgres: %w", errors.Join(err, dir.close()))
	}
	return db, nil
}

// openIn starts a server on a claimed directory. It may run in a container if mayContain says so.
func openIn(ctx context.Context, dir *dataDir, f finder, opts Options, mayContain bool) (Database, error) {
	n, contained, err := dir.need(f.major)
	switch {
	case err != nil:
		return nil, err
	case contained && !mayContain:
		return nil, fmt.Errorf("the data of %s is in a volume of Docker, but files are needed: use another directory", dir.dir)
	case contained:
		return reopenContainer(ctx, dir, opts, f)
	}
	bin := f.present(ctx, n)
	var noDocker error // why there is no container, if there should be one
	if bin == "" && mayContain && !n.data {
		var c *container
		if c, noDocker = newContainer(ctx, dir, cmp.Or(n.major, fetch.DefaultMajor), opts, f); noDocker == nil {
			return c, nil
		}
	}
	if bin == "" {
		bin, err = f.fetch(ctx, n, noDocker)
	}
	if err != nil {
		return nil, err
	}
	return startServer(ctx, dir, bin, opts)
}

// need returns what the data in d needs, which must be the version that is demanded, if one is. It reports whether the
// data is in a container.
func (d *dataDir) need(demanded string) (n need, contained bool, err error) {
	n.major, err = d.major()
	if err != nil {
		return need{}, false, err
	}
	n.data = n.major != ""
	kept, err := d.readContainer()
	if err == nil {
		contained, n.major, n.data = true, kept.Major, true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return need{}, false, err
	}
	if n.data && demanded != "" && demanded != n.major {
		return need{}, false, fmt.Errorf("the data in %s was written by PostgreSQL %s, but PADDOCK_POSTGRES_VERSION is %s: "+
			"unset it, or use another directory", d.dir, n.major, demanded)
	}
	n.major = cmp.Or(n.major, demanded)
	return n, contained, nil
}

// containerFile is the name of the file that describes the container of a directory.
const containerFile = "container"

func (d *dataDir) containerPath() string { return filepath.Join(d.dir, containerFile) }

// writeFile writes a file that only this process's account can read, atomically.
func writeFile(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
