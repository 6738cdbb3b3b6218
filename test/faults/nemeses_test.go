package faults_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func replicaNemeses() []nemesis {
	return []nemesis{
		{"a replica is killed", 2, replicas, 25, durationRange{0, 1500 * time.Millisecond}, killReplicas},
		{"a replica is terminated", 2, replicas, 0, durationRange{0, time.Second}, stopReplicas},
		{"a replica hangs", 2, replicas, 25, durationRange{500 * time.Millisecond, 4 * time.Second}, hangReplicas},
	}
}

func killReplicas(_ context.Context, d *deployment, f fault) (undoFunc, error) {
	return restart(d, f), f.each(d, (*replica).kill)
}

func stopReplicas(_ context.Context, d *deployment, f fault) (undoFunc, error) {
	return restart(d, f), f.each(d, (*replica).stop)
}

// restart restarts the replicas, with retries, as a supervisor does.
func restart(d *deployment, f fault) undoFunc {
	return func(ctx context.Context) error {
		return f.each(d, func(r *replica) error {
			return retry(ctx, func() error { return r.start(ctx) })
		})
	}
}

func hangReplicas(_ context.Context, d *deployment, f fault) (undoFunc, error) {
	goOn := func(context.Context) error {
		return f.each(d, func(r *replica) error { return r.process.signal(syscall.SIGCONT) })
	}
	return goOn, f.each(d, func(r *replica) error { return r.process.signal(syscall.SIGSTOP) })
}

// Names of the crashes of PostgreSQL.
const (
	serverKilled  = "PostgreSQL is killed"
	serverStopped = "PostgreSQL is stopped without a checkpoint"
	backendKilled = "a backend is killed"
)

// awaitsLull reports whether the fault waits for a lull of the workload: two of three crashes of PostgreSQL do.
func (f fault) awaitsLull() bool {
	return (f.name == serverKilled || f.name == serverStopped || f.name == backendKilled) && f.seed%3 != 0
}

func serverNemeses() []nemesis {
	return []nemesis{
		{serverKilled, 2, server, 100, durationRange{0, time.Second}, killServer},
		{serverStopped, 2, server, 100, durationRange{0, time.Second}, stopServerAtOnce},
		{"PostgreSQL is restarted", 1, server, 100, durationRange{0, time.Second}, restartServer},
		{"PostgreSQL hangs", 2, server, 100, aboutASecond, hangServer},
		{backendKilled, 2, server, 100, durationRange{}, killBackend},
	}
}

func killServer(_ context.Context, d *deployment, _ fault) (undoFunc, error) {
	return d.database.start, d.database.host.Kill()
}

// stopServerAtOnce stops PostgreSQL without a checkpoint, so that it recovers when it starts.
func stopServerAtOnce(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return d.database.start, d.database.host.StopAtOnce(ctx)
}

func restartServer(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return d.database.start, d.database.host.Shutdown(ctx)
}

func hangServer(_ context.Context, d *deployment, _ fault) (undoFunc, error) {
	goOn := func(context.Context) error { return d.database.host.Resume() }
	return goOn, d.database.host.Pause()
}

func killBackend(ctx context.Context, d *deployment, f fault) (undoFunc, error) {
	return d.database.answers, d.database.killBackend(ctx, f.rng().IntN(maxConnections))
}

// networkNemeses returns the faults of the network between clients and Paddock, or between Paddock and
// PostgreSQL. Cut answers, which may be those to commits, have the greatest weight.
func networkNemeses(f component) []nemesis {
	between := " between " + string(f)
	onLine := func(draw func(*rand.Rand) []toxic) func(context.Context, *deployment, fault) (undoFunc, error) {
		return func(_ context.Context, d *deployment, f fault) (undoFunc, error) {
			return addToxics(d, f, draw(f.rng()))
		}
	}
	brief := durationRange{50 * time.Millisecond, 600 * time.Millisecond}
	return []nemesis{
		{"connections are reset" + between, 1, f, 30, brief, onLine(resets)},
		{"data is delayed" + between, 1, f, 30, aboutASecond, onLine(delays)},
		{"data is slow and in small pieces" + between, 1, f, 30, aboutASecond, onLine(pieces)},
		{"requests are dropped" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond},
			onLine(drops(requests))},
		{"answers are dropped" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond},
			onLine(drops(answers))},
		{"data is dropped" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond},
			onLine(drops(requests, answers))},
		{"requests are cut off" + between, 1, f, 30, brief, onLine(cutsOff(requests))},
		{"answers are cut off" + between, 2, f, 40, brief, onLine(cutsOff(answers))},
	}
}

// addToxics adds the toxics to the proxies that the fault is about.
func addToxics(d *deployment, f fault, toxics []toxic) (undoFunc, error) {
	var mu sync.Mutex
	var cures []undoFunc
	err := f.each(d, func(r *replica) error {
		l := r.clientProxy
		if f.component == databaseNetwork {
			l = r.databaseProxy
		}
		var err error
		for _, x := range toxics {
			c, e := l.addToxic(x)
			if err = errors.Join(err, e); e == nil {
				mu.Lock()
				cures = append(cures, c)
				mu.Unlock()
			}
		}
		return err
	})
	return func(ctx context.Context) error {
		return inParallel(len(cures), func(i int) error { return cures[i](ctx) })
	}, err
}

// resets resets connections, also new ones, at the next byte.
func resets(*rand.Rand) []toxic {
	now := map[string]int{"timeout": 0}
	return []toxic{{"reset_peer", requests, now}, {"reset_peer", answers, now}}
}

func delays(r *rand.Rand) []toxic {
	by := func() map[string]int { return map[string]int{"latency": 50 + r.IntN(450), "jitter": r.IntN(50)} }
	return []toxic{{"latency", requests, by()}, {"latency", answers, by()}}
}

func pieces(r *rand.Rand) []toxic {
	slices := map[string]int{"average_size": 16 + r.IntN(200)}
	narrow := map[string]int{"rate": 50 + r.IntN(150)} // in kilobytes a second
	return []toxic{{sliced, requests, slices}, {sliced, answers, slices}, {"bandwidth", answers, narrow}}
}

// drops drops all data in these directions. The connections stay open, and are closed when it is undone.
func drops(directions ...direction) func(*rand.Rand) []toxic {
	return func(*rand.Rand) (all []toxic) {
		for _, w := range directions {
			all = append(all, toxic{"timeout", w, map[string]int{"timeout": 0}})
		}
		return all
	}
}

// cutsOff closes each connection after a few more bytes in that direction: none, or enough for a part of a
// message or for the start of a new connection.
func cutsOff(to direction) func(*rand.Rand) []toxic {
	return func(r *rand.Rand) []toxic {
		most := []int{1, 50, 2000, 30_000}
		return []toxic{{"limit_data", to, map[string]int{"bytes": r.IntN(most[r.IntN(len(most))])}}}
	}
}

const paddockBackends = " from pg_catalog.pg_stat_activity where application_name = 'paddock'"

func databaseNemeses() []nemesis {
	return []nemesis{
		{"all backends are terminated", 1, server, 100, durationRange{},
			runStatement("select pg_terminate_backend(pid)" + paddockBackends)},
		{"all statements are cancelled", 1, server, 100, durationRange{},
			runStatement("select pg_cancel_backend(pid)" + paddockBackends)},
		{"an outsider locks a row", 2, server, 100, aboutASecond, lockRow},
		{"an outsider idles in a transaction", 1, server, 100, durationRange{time.Second, 2500 * time.Millisecond},
			idleInTransaction},
		{"an outsider locks a table", 1, server, 100, durationRange{200 * time.Millisecond, time.Second}, lockTable},
		{"an outsider takes all connections", 1, server, 100, aboutASecond, exhaustConnections},
		{"commits wait for a standby", 2, server, 100, aboutASecond, awaitStandby},
	}
}

// runStatement runs one statement as an outsider.
func runStatement(statement string) func(context.Context, *deployment, fault) (undoFunc, error) {
	return func(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
		return noUndo, d.database.once(ctx, "paddock", statement)
	}
}

// lockRow locks the row of a lock that was used recently.
func lockRow(ctx context.Context, d *deployment, f fault) (undoFunc, error) {
	return openTransaction(ctx, d,
		"begin",
		"select from paddock.records where name = ("+
			"select name from paddock.records order by changed_at desc offset $1 limit 1) for update",
		f.rng().IntN(10))
}

// idleInTransaction keeps an old snapshot and a few locked rows, like a forgotten debugger.
func idleInTransaction(ctx context.Context, d *deployment, f fault) (undoFunc, error) {
	return openTransaction(ctx, d,
		"begin isolation level repeatable read",
		"select from paddock.records order by changed_at desc offset $1 limit 3 for share",
		f.rng().IntN(10))
}

// lockTable blocks writes to a table, like the building of an index.
func lockTable(ctx context.Context, d *deployment, f fault) (undoFunc, error) {
	tables := []string{"records", "parts", "event_batches", "event_refs", "replicas", "fenced"}
	return openTransaction(ctx, d, "begin", "lock table paddock."+tables[f.rng().IntN(len(tables))]+" in share mode")
}

// openTransaction begins a transaction as an outsider and runs a statement in it. The undoFunc rolls it back.
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

// expectedConflict reports whether a statement timed out behind Paddock's transactions, or failed because a
// row has changed since the snapshot. The transaction has disturbed Paddock until then.
func expectedConflict(err error) bool {
	var pgErr *pgconn.PgError
	return errors.As(err, &pgErr) && (pgErr.Code == "57014" || pgErr.Code == "40001")
}

// awaitStandby makes commits wait for a standby that does not exist. Such commits become visible only when it
// is undone.
func awaitStandby(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
	set := func(ctx context.Context, statement string) error {
		return errors.Join(d.database.once(ctx, "postgres", statement),
			d.database.once(ctx, "postgres", "select pg_reload_conf()"))
	}
	reset := func(ctx context.Context) error { return set(ctx, "alter system reset synchronous_standby_names") }
	return reset, set(ctx, "alter system set synchronous_standby_names = 'absent'")
}

// exhaustConnections takes all connections, including Paddock's.
func exhaustConnections(ctx context.Context, d *deployment, _ fault) (undoFunc, error) {
	conns, err := connectMany(ctx, d, maxConnections)
	leave := func(ctx context.Context) error {
		return inParallel(len(conns), func(i int) error { return conns[i].Close(ctx) })
	}
	if err != nil || len(conns) == 0 {
		return leave, errors.Join(err, errors.New("no connection could be made"))
	}
	if _, err := conns[0].Exec(ctx, "select pg_terminate_backend(pid)"+paddockBackends); err != nil {
		return leave, err
	}
	more, err := connectMany(ctx, d, maxConnections)
	conns = append(conns, more...)
	return leave, err
}

// connectMany makes n connections, or as many as PostgreSQL accepts.
func connectMany(ctx context.Context, d *deployment, n int) ([]*pgx.Conn, error) {
	got := make([]*pgx.Conn, n)
	err := inParallel(n, func(i int) error {
		conn, err := d.database.connect(ctx, "paddock")
		if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) && pgErr.Code == "53300" {
			return nil // too many connections
		}
		got[i] = conn
		return err
	})
	var conns []*pgx.Conn
	for _, conn := range got {
		if conn != nil {
			conns = append(conns, conn)
		}
	}
	return conns, err
}
