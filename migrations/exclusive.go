package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/pgversion"
	"github.com/paddock-lock/paddock/internal/poolmode"
)

// advisoryKey is the advisory lock held during a migration of the schema paddock: "paddock" in ASCII.
const advisoryKey int64 = 0x706164646f636b

// withLock calls f with the schema's version while no other process migrates the database. It returns an error for a
// schema that is too new, and for a pooler in transaction mode, which would keep the lock on one of its own
// connections.
func (r release) withLock(ctx context.Context, databaseURL string, f func(conn *pgx.Conn, version uint) error) (err error) {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() {
		// Close releases the advisory lock, so it must run even if ctx has ended.
		err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}()
	if err := refusePooler(ctx, conn, databaseURL); err != nil {
		return err
	}
	if err := pgconnect.Pin(ctx, conn.PgConn()); err != nil {
		return err
	}
	if err := r.lockMigrations(ctx, conn); err != nil {
		return err
	}
	defer time.AfterFunc(reportAfter, func() {
		r.log.Warn("waiting for the database to migrate the schema; see pg_stat_activity", "schema", r.in)
	}).Stop()
	version, err := r.read(ctx, conn)
	switch {
	case err != nil:
		return err
	case version > r.latest():
		return &NewerError{Version: version, Latest: r.latest()}
	}
	return f(conn, version)
}

// connect opens a connection. It ignores pool settings in the URL. The error is a
// *pgversion.TooOldError if the server is too old.
func connect(ctx context.Context, databaseURL string) (*pgx.Conn, error) {
	pool, err := pgconnect.Parse(databaseURL)
	if err != nil {
		return nil, err
	}
	config := pool.ConnConfig
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // no prepared statements: a pooler may be in between
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	if _, err := pgversion.Require(ctx, conn.PgConn()); err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return conn, nil
}

// refusePooler returns a poolmode.Error if the connection goes through a pooler in transaction mode. It opens a
// second connection to find out.
func refusePooler(ctx context.Context, conn *pgx.Conn, databaseURL string) error {
	second, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	err = poolmode.Refuse(ctx, conn.PgConn(), second.PgConn(), poolmode.ToMigrate)
	return errors.Join(err, second.Close(context.WithoutCancel(ctx)))
}

// lockMigrations acquires the advisory lock by polling. The snapshot of a statement that waits in the database could
// block the migration that it waits for.
func (r release) lockMigrations(ctx context.Context, conn *pgx.Conn) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	report := time.NewTimer(reportAfter)
	defer report.Stop()
	for {
		var mine bool
		err := conn.QueryRow(ctx, "select pg_catalog.pg_try_advisory_lock($1)", r.in.Key(advisoryKey)).Scan(&mine)
		if err != nil || mine {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("migrations: another process is migrating this schema: %w", context.Cause(ctx))
		case <-report.C:
			r.log.Warn("another process is migrating this schema; waiting for it", "schema", r.in)
		case <-tick.C:
		}
	}
}

// findTable returns the columns of the table of the version, null if there is none. It needs no right.
const findTable = `
select pg_catalog.string_agg(a.attname || ' ' || pg_catalog.format_type(a.atttypid, null), ', ' order by a.attnum)
    filter (where a.attnum > 0 and not a.attisdropped)
from pg_catalog.pg_class as c join pg_catalog.pg_attribute as a on a.attrelid = c.oid
where c.relnamespace = pg_catalog.to_regnamespace($1) and c.relname = 'schema_migrations'`

// ownColumns is what findTable returns for the table of createTable. Other programs name a table of versions like
// Paddock's.
const ownColumns = "version bigint"

// read returns the version of the schema.
func (r release) read(ctx context.Context, conn *pgx.Conn) (version uint, err error) {
	var columns *string
	if err = conn.QueryRow(ctx, findTable, r.in.String()).Scan(&columns); err == nil && columns != nil {
		if *columns != ownColumns {
			return 0, fmt.Errorf("migrations: the table %s.schema_migrations is of another program; use another schema", r.in)
		}
		err = conn.QueryRow(ctx, r.in.In("select version from paddock.schema_migrations")).Scan(&version)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if pgconnect.Denied(err) {
		role := pgx.Identifier{conn.Config().User}.Sanitize()
		return 0, fmt.Errorf("migrations: reading the schema version: %w; run as the owner of the schema %s: grant usage "+
			"on schema %[2]s to %[3]s; grant select on %[2]s.schema_migrations to %[3]s;", err, r.in, role)
	}
	if err != nil {
		return 0, fmt.Errorf("migrations: reading the schema version: %w", err)
	}
	return version, nil
}

// createSchema creates the schema and the table of its version unless they exist. It checks first, because
// "if not exists" requires the right to create schemas even for an existing one.
func (r release) createSchema(ctx context.Context, conn *pgx.Conn) error {
	var missing bool
	err := conn.QueryRow(ctx, "select pg_catalog.to_regnamespace($1) is null", r.in.String()).Scan(&missing)
	if err == nil && missing {
		_, err = conn.Exec(ctx, "create schema if not exists "+r.in.String())
	}
	if err == nil {
		_, err = conn.Exec(ctx, r.in.In(createTable))
	}
	switch config := conn.Config(); {
	case err == nil:
		return nil
	case !pgconnect.Denied(err):
		return fmt.Errorf("migrations: creating the schema %s: %w", r.in, err)
	case missing:
		return fmt.Errorf("migrations: creating the schema %s: %w; run as the owner of the database: grant create on database %s to %s;",
			r.in, err, pgx.Identifier{config.Database}.Sanitize(), pgx.Identifier{config.User}.Sanitize())
	default:
		return fmt.Errorf("migrations: creating the schema's table: %w; run this as the owner of the schema %s", err, r.in)
	}
}
