package migrations

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/internal/poolmode"
)

// advisoryKey is the advisory lock of who migrates: "paddock" in ASCII.
const advisoryKey int64 = 0x706164646f636b

// undefinedTable is the SQLSTATE for a table, or its schema, that is not there.
const undefinedTable = "42P01"

// withLock calls f with the schema's version while no other process migrates this
// database. A schema that is dirty or too new never reaches f, and neither does a connection
// through a pooler in transaction mode: the lock would stay with a connection of the pooler's.
func withLock(ctx context.Context, databaseURL string, f func(conn *pgx.Conn, version uint) error) (err error) {
	conn, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer func() {
		// Closing gives the advisory lock back, so it must happen even when ctx has ended.
		err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}()
	if err := refusePooler(ctx, conn, databaseURL); err != nil {
		return err
	}
	if err := lockMigrations(ctx, conn); err != nil {
		return err
	}
	version, dirty, err := read(ctx, conn)
	switch {
	case err != nil:
		return err
	case dirty:
		return &DirtyError{Version: version}
	case version > Latest():
		return &NewerError{Version: version, Latest: Latest()}
	}
	return f(conn, version)
}

// connect opens a connection without a limit on its statements. The URL may
// hold a pool's settings, which mean nothing here.
func connect(ctx context.Context, databaseURL string) (*pgx.Conn, error) {
	pool, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	config := pool.ConnConfig
	config.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		return c.Exec(ctx, "set statement_timeout = 0").Close()
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // what is asked once need not be prepared, and a pooler may stand between
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return conn, nil
}

// refusePooler returns a poolmode.Error if the connection leads through a pooler in transaction
// mode. It opens another for that.
func refusePooler(ctx context.Context, conn *pgx.Conn, databaseURL string) error {
	second, err := connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	err = poolmode.Refuse(ctx, conn.PgConn(), second.PgConn(), poolmode.ToMigrate)
	return errors.Join(err, second.Close(context.WithoutCancel(ctx)))
}

// lockMigrations takes the advisory lock. It asks again and again instead of waiting in
// the database, where a waiting statement's snapshot could hold up the very
// migration that it waits for.
func lockMigrations(ctx context.Context, conn *pgx.Conn) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var mine bool
		err := conn.QueryRow(ctx, "select pg_catalog.pg_try_advisory_lock($1)", advisoryKey).Scan(&mine)
		if err != nil || mine {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("migrations: another process is migrating this database: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// read returns the version that the database is at.
func read(ctx context.Context, conn *pgx.Conn) (version uint, dirty bool, err error) {
	var at int64 // -1 on a way down that broke off before the first version
	err = conn.QueryRow(ctx, "select version, dirty from paddock.schema_migrations").Scan(&at, &dirty)
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == undefinedTable || errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("migrations: reading the schema's version: %w", err)
	}
	return uint(max(at, 0)), dirty, nil
}

// createSchema makes the schema paddock where it is missing. It asks first,
// because "if not exists" alone needs the right to create schemas even when
// there is nothing to create.
func createSchema(ctx context.Context, conn *pgx.Conn) error {
	var missing bool
	err := conn.QueryRow(ctx, "select pg_catalog.to_regnamespace('paddock') is null").Scan(&missing)
	if err == nil && missing {
		_, err = conn.Exec(ctx, "create schema if not exists paddock")
	}
	if err != nil {
		return fmt.Errorf("migrations: making the schema paddock: %w", err)
	}
	return nil
}
