package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Up migrates the database to Latest, and does nothing if it is there already. Through a pooler in transaction mode
// it returns a poolmode.Error unless there is nothing to do. Several processes may call it at the same time. If ctx
// ends, it stops before the next migration, never during one. If the process or its connection dies, the next call
// continues. It returns a *NewerError for a schema that it must not change.
func Up(ctx context.Context, databaseURL string) error { return this.up(ctx, databaseURL) }

func (r release) up(ctx context.Context, databaseURL string) error {
	// If Version fails, withLock fails too and returns the error.
	if version, err := Version(ctx, databaseURL); err == nil && version == r.latest() {
		return nil
	}
	return r.withLock(ctx, databaseURL, func(conn *pgx.Conn, version uint) error {
		if version == r.latest() {
			return nil
		}
		if err := createSchema(ctx, conn); err != nil {
			return err
		}
		return r.migrateTo(ctx, conn, version, r.latest())
	})
}

// Down reverts the newest migrations, steps in number, and drops the data in their tables and columns. Only operators
// call it. It returns an error and changes nothing if steps is less than one or more than the number of versions.
func Down(ctx context.Context, databaseURL string, steps int) error {
	return this.down(ctx, databaseURL, steps)
}

func (r release) down(ctx context.Context, databaseURL string, steps int) error {
	return r.withLock(ctx, databaseURL, func(conn *pgx.Conn, version uint) error {
		if steps < 1 || uint(steps) > version {
			return fmt.Errorf("migrations: cannot go down %d steps from version %d", steps, version)
		}
		return r.migrateTo(ctx, conn, version, version-uint(steps))
	})
}

// DownTo is Down to a version, 0 for a database without tables. It does nothing if the schema is at that version, and
// returns an error and changes nothing if it is below.
func DownTo(ctx context.Context, databaseURL string, to uint) error {
	return this.downTo(ctx, databaseURL, to)
}

func (r release) downTo(ctx context.Context, databaseURL string, to uint) error {
	return r.withLock(ctx, databaseURL, func(conn *pgx.Conn, version uint) error {
		if to > version {
			return fmt.Errorf("migrations: cannot go down to version %d from version %d", to, version)
		}
		return r.migrateTo(ctx, conn, version, to)
	})
}

// Version returns the version of the database, 0 if it was never migrated. It changes nothing.
func Version(ctx context.Context, databaseURL string) (version uint, err error) {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return 0, err
	}
	version, err = read(ctx, conn)
	return version, errors.Join(err, conn.Close(ctx))
}

// A NewerError means that a newer release has migrated the schema.
type NewerError struct {
	Version uint // of the schema
	Latest  uint // known to this binary
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("migrations: the schema is at version %d, but this paddock knows only versions up to %d: "+
		"run the newer release; a schema never goes back automatically", e.Version, e.Latest)
}
