package migrations

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Up brings the database to Latest; one that is there already is left alone. Through a pooler in
// transaction mode it can do the latter only, and otherwise returns a poolmode.Error.
// Several processes may call it at the same time. When ctx ends it stops before
// the next migration, never within one. A schema that it must not touch is a
// *DirtyError or a *NewerError.
func Up(ctx context.Context, databaseURL string) error {
	// What Version cannot read, alone cannot read either, and reports.
	if version, dirty, err := Version(ctx, databaseURL); err == nil && !dirty && version == Latest() {
		return nil
	}
	return withLock(ctx, databaseURL, func(conn *pgx.Conn, version uint) error {
		if version == Latest() {
			return nil
		}
		if err := createSchema(ctx, conn); err != nil {
			return err
		}
		return migrateTo(ctx, conn.Config(), version, Latest())
	})
}

// Down undoes the newest migrations, as many as steps says, and the data in
// what they made is lost. Nothing calls it without a person's wish. Asked for
// more steps than there are versions it does nothing and says so.
func Down(ctx context.Context, databaseURL string, steps int) error {
	return withLock(ctx, databaseURL, func(conn *pgx.Conn, version uint) error {
		if steps < 1 || uint(steps) > version {
			return fmt.Errorf("migrations: cannot go down %d steps from version %d", steps, version)
		}
		return migrateTo(ctx, conn.Config(), version, version-uint(steps))
	})
}

// Version returns what the database is at, 0 for one that was never migrated,
// and whether a migration broke off there. It changes nothing.
func Version(ctx context.Context, databaseURL string) (version uint, dirty bool, err error) {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return 0, false, err
	}
	version, dirty, err = read(ctx, conn)
	return version, dirty, errors.Join(err, conn.Close(ctx))
}

// A DirtyError is a schema that a migration to Version broke off at, because
// the connection or the process died in the middle.
type DirtyError struct {
	Version uint
}

func (e *DirtyError) Error() string {
	return fmt.Sprintf(`migrations: the schema is marked dirty, because the way to version %d broke off. `+
		`Each migration is one transaction, so it is there in full or not at all: look which, with \d paddock.* in psql. `+
		`Then say so, by "update paddock.schema_migrations set version = N, dirty = false", `+
		`or "delete from paddock.schema_migrations" if there is nothing yet, and migrate again`, e.Version)
}

// A NewerError is a schema that a newer release has made.
type NewerError struct {
	Version uint // of the schema
	Latest  uint // that this binary knows
}

func (e *NewerError) Error() string {
	return fmt.Sprintf("migrations: the schema is at version %d, but this paddock knows only versions up to %d: "+
		"run the newer release; the schema is never taken back by itself", e.Version, e.Latest)
}
