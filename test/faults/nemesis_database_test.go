package faults_test

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const paddockBackends = " from pg_catalog.pg_stat_activity where application_name = 'paddock'"

func databaseNemeses() []nemesis {
	return []nemesis{
		{"all backends are terminated", 1, server, 100, durationRange{}, runStatement("select pg_terminate_backend(pid)" + paddockBackends)},
		{"all statements are cancelled", 1, server, 100, durationRange{}, runStatement("select pg_cancel_backend(pid)" + paddockBackends)},
		{"somebody locks a row", 2, server, 100, aboutASecond, lockRow},
		{"somebody idles in a transaction", 1, server, 100, durationRange{time.Second, 2500 * time.Millisecond}, idleInTransaction},
		{"somebody locks a table", 1, server, 100, durationRange{200 * time.Millisecond, time.Second}, lockTable},
		{"somebody takes all connections", 1, server, 100, aboutASecond, exhaustConnections},
		{"commits wait for a standby", 2, server, 100, aboutASecond, awaitStandby},
	}
}

// runStatement has somebody run a statement.
func runStatement(statement string) func(context.Context, *deployment, fault) (undoFunc, error) {
	return func(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
		return noUndo, d.database.once(ctx, "paddock", statement)
	}
}

// lockRow has somebody lock the row of one of the locks that were used last.
func lockRow(ctx context.Context, d *deployment, f fault) (undoFunc, error) {
	return openTransaction(ctx, d,
		"begin",
		"select from paddock.locks where slot = 0 and name = ("+
			"select name from paddock.locks where slot = 0 order by changed_at desc offset $1 limit 1) for update",
		f.rng().IntN(10))
}

// idleInTransaction has somebody keep an old snapshot, and a few rows locked, as a debugger does
// that is forgotten.
func idleInTransaction(ctx context.Context, d *deployment, f fault) (undoFunc, error) {
	return openTransaction(ctx, d,
		"begin isolation level repeatable read",
		"select from paddock.locks where slot = 0 order by changed_at desc offset $1 limit 3 for share",
		f.rng().IntN(10))
}

// lockTable has somebody keep others from writing what happens, as building an index
// does.
func lockTable(ctx context.Context, d *deployment, f fault) (undoFunc, error) {
	tables := []string{"locks", "events", "waiters", "replicas", "fenced"}
	return openTransaction(ctx, d, "begin", "lock table paddock."+tables[f.rng().IntN(len(tables))]+" in share mode")
}

// openTransaction has somebody begin a transaction and run a statement in it. The cure rolls it
// back.
func openTransaction(ctx context.Context, d *deployment, begin, statement string, args ...any) (undoFunc, error) {
	conn, err := d.database.connect(ctx, "paddock")
	if err != nil {
		return nil, err
	}
	for _, sql := range []string{begin, "set local statement_timeout = '10s'"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return nil, errors.Join(err, conn.Close(ctx))
		}
	}
	if _, err := conn.Exec(ctx, statement, args...); err != nil && !expectedConflict(err) {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn.Close, nil
}

// expectedConflict is whether a statement was given up for having waited behind Paddock's
// own transactions, or because a row has changed since the snapshot was taken. Then
// Paddock was in nobody's way, and somebody in Paddock's until now.
func expectedConflict(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && (said.Code == "57014" || said.Code == "40001")
}

// awaitStandby lets no commit return before a standby has it, where there is none. What
// was committed meanwhile can be seen only when that is over.
func awaitStandby(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
	set := func(ctx context.Context, statement string) error {
		return errors.Join(d.database.once(ctx, "postgres", statement), d.database.once(ctx, "postgres", "select pg_reload_conf()"))
	}
	reset := func(ctx context.Context) error { return set(ctx, "alter system reset synchronous_standby_names") }
	return reset, set(ctx, "alter system set synchronous_standby_names = 'absent'")
}

// exhaustConnections has somebody take all connections that there are, and those of Paddock too.
func exhaustConnections(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
	crowd, err := connectMany(ctx, d, maxConnections)
	leave := func(ctx context.Context) error {
		return inParallel(len(crowd), func(i int) error { return crowd[i].Close(ctx) })
	}
	if err != nil || len(crowd) == 0 {
		return leave, errors.Join(err, errors.New("nobody got in"))
	}
	if _, err := crowd[0].Exec(ctx, "select pg_terminate_backend(pid)"+paddockBackends); err != nil {
		return leave, err
	}
	more, err := connectMany(ctx, d, maxConnections)
	crowd = append(crowd, more...)
	return leave, err
}

// connectMany makes that many connections, or as many as PostgreSQL takes.
func connectMany(ctx context.Context, d *deployment, n int) ([]*pgx.Conn, error) {
	got := make([]*pgx.Conn, n)
	err := inParallel(n, func(i int) error {
		conn, err := d.database.connect(ctx, "paddock")
		if said := (*pgconn.PgError)(nil); errors.As(err, &said) && said.Code == "53300" {
			return nil // too many connections
		}
		got[i] = conn
		return err
	})
	var crowd []*pgx.Conn
	for _, conn := range got {
		if conn != nil {
			crowd = append(crowd, conn)
		}
	}
	return crowd, err
}
