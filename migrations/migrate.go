package migrations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
)

// Up migrates the schema of that name to Latest, and does nothing if it is there already. An empty name is paddock.
// Through a pooler in transaction mode it returns a poolmode.Error unless there is nothing to do. Several processes may
// call it at the same time. If ctx ends, it stops before the next migration, never during one. If the process or its
// connection dies, the next call continues. It returns a *NewerError for a schema that it must not change. What it
// waits for longer than a second, such as another migration, it logs once. If log is nil, nothing is logged.
func Up(ctx context.Context, databaseURL, schema string, log *slog.Logger) error {
	r, err := forSchema(schema, log)
	if err != nil {
		return err
	}
	return r.up(ctx, databaseURL)
}

func (r release) up(ctx context.Context, databaseURL string) error {
	// If version fails, withLock fails too and returns the error.
	if version, err := r.version(ctx, databaseURL); err == nil && version == r.latest() {
		return nil
	}
	return r.withLock(ctx, databaseURL, func(conn *pgx.Conn, version uint) error {
		if version == r.latest() {
			return nil
		}
		if err := r.createSchema(ctx, conn); err != nil {
			return err
		}
		return r.migrateTo(ctx, conn, version, r.latest())
	})
}

// Down reverts the newest migrations, steps in number, and drops the data in their tables and columns. Only operators
// call it. It returns an error and changes nothing if steps is less than one or more than the number of versions. It
// logs what Up logs.
func Down(ctx context.Context, databaseURL, schema string, steps int, log *slog.Logger) error {
	r, err := forSchema(schema, log)
	if err != nil {
		return err
	}
	return r.withLock(ctx, databaseURL, func(conn *pgx.Conn, version uint) error {
		if steps < 1 || uint(steps) > version {
			return fmt.Errorf("migrations: cannot go down %d steps from version %d", steps, version)
		}
		return r.migrateTo(ctx, conn, version, version-uint(steps))
	})
}

// DownTo is Down to a version, 0 for a schema without tables. It does nothing if the schema is at that version, and
// returns an error and changes nothing if it is below.
func DownTo(ctx context.Context, databaseURL, schema string, to uint, log *slog.Logger) error {
	r, err := forSchema(schema, log)
	if err != nil {
		return err
	}
	return r.downTo(ctx, databaseURL, to)
}

func (r release) downTo(ctx context.Context, databaseURL string, to uint) error {
	return r.withLock(ctx, databaseURL, func(conn *pgx.Conn, version uint) error {
		if to > version {
			return fmt.Errorf("migrations: cannot go down to version %d from version %d", to, version)
		}
		return r.migrateTo(ctx, conn, version, to)
	})
}

// Version returns the version of the schema of that name, 0 if it was never migrated. It changes nothing. An empty
// name is paddock.
func Version(ctx context.Context, databaseURL, schema string) (version uint, err error) {
	r, err := forSchema(schema, nil)
	if err != nil {
		return 0, err
	}
	return r.version(ctx, databaseURL)
}

func (r release) version(ctx context.Context, databaseURL string) (version uint, err error) {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return 0, err
	}
	version, err = r.read(ctx, conn)
	return version, errors.Join(err, conn.Close(ctx))
}

// migrationRights returns whether the schema is missing, and whether the role may create it, or else change it.
const migrationRights = `
select pg_catalog.to_regnamespace($1) is null, case when pg_catalog.to_regnamespace($1) is null
	then pg_catalog.has_database_privilege(pg_catalog.current_database(), 'create')
	else pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace($1), 'create') and not exists (select from pg_catalog.pg_class
		where relnamespace = pg_catalog.to_regnamespace($1) and relkind in ('r', 'S', 'v') and not pg_catalog.pg_has_role(relowner, 'usage'))
	end`

// CheckRights returns an error, with what to do, if the role may not migrate the schema of that name up. It changes
// nothing.
func CheckRights(ctx context.Context, databaseURL, schema string) error {
	r, err := forSchema(schema, nil)
	if err != nil {
		return err
	}
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	var missing, may bool
	err = conn.QueryRow(ctx, migrationRights, r.in.String()).Scan(&missing, &may)
	switch config := conn.Config(); {
	case err != nil || may:
	case missing:
		err = fmt.Errorf("the role may not create the schema %s; run as the owner of the database: grant create on database %s to %s;",
			r.in, pgx.Identifier{config.Database}.Sanitize(), pgx.Identifier{config.User}.Sanitize())
	default:
		err = fmt.Errorf("the role may not migrate the schema %s; run paddock migrate up as its owner, and leave out --migrate", r.in)
	}
	return errors.Join(err, conn.Close(ctx))
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
