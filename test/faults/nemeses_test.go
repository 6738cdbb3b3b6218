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
		{"a replica is told to stop", 2, replicas, 0, durationRange{0, time.Second}, stopReplicas},
		{"a replica hangs", 2, replicas, 25, durationRange{500 * time.Millisecond, 4 * time.Second}, hangReplicas},
	}
}

func killReplicas(_ context.Context, d *deployment, f fault) (undoFunc, error) {
	return restart(d, f), f.each(d, (*replica).kill)
}

func stopReplicas(_ context.Context, d *deployment, f fault) (undoFunc, error) {
	return restart(d, f), f.each(d, (*replica).stop)
}

// restart starts the replicas again, and again if they do not come up, as a supervisor
// does.
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

// The ways in which PostgreSQL crashes.
const (
	serverKilled  = "PostgreSQL is killed"
	serverStopped = "PostgreSQL is stopped at once"
	backendKilled = "a backend is killed"
)

// awaitsLull reports whether the fault waits for a lull of the load: two of three crashes
// of PostgreSQL do.
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

// stopServerAtOnce has PostgreSQL end without a checkpoint, so that it recovers when it
// starts.
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

// networkNemeses returns what goes wrong between clients and Paddock, or Paddock and
// PostgreSQL. That answers are cut, and with luck after a commit, comes more often.
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
		{"all is delayed" + between, 1, f, 30, aboutASecond, onLine(delays)},
		{"all is slow and in small pieces" + between, 1, f, 30, aboutASecond, onLine(pieces)},
		{"requests are swallowed" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond}, onLine(drops(requests))},
		{"answers are swallowed" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond}, onLine(drops(answers))},
		{"all is swallowed" + between, 1, f, 30, durationRange{300 * time.Millisecond, 2500 * time.Millisecond}, onLine(drops(requests, answers))},
		{"requests are cut off" + between, 1, f, 30, brief, onLine(cutsOff(requests))},
		{"answers are cut off" + between, 2, f, 40, brief, onLine(cutsOff(answers))},
	}
}

// addToxics puts the toxics on the lines that the fault is about.
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

// resets ends connections, those that there are and those that come, at the next byte.
func resets(*rand.Rand) []toxic {
	now := map[string]int{"timeout": 0}
	return []toxic{{"reset_peer", requests, now}, {"reset_peer", answers, now}}
}

func delays(r *rand.Rand) []toxic {
	by := func() map[string]int { return map[string]int{"latency": 50 + r.IntN(450), "jitter": r.IntN(50)} }
	return []toxic{{"latency", requests, by()}, {"latency", answers, by()}}
}

func pieces(r *rand.Rand) []toxic {
	slices := map[string]int{"average_size": 16 + r.IntN(200), "size_variation": 8, "delay": r.IntN(300)} // delay in microseconds
	narrow := map[string]int{"rate": 50 + r.IntN(150)}                                                    // in kilobytes a second
	return []toxic{{"slicer", requests, slices}, {"slicer", answers, slices}, {"bandwidth", answers, narrow}}
}

// drops lets nothing through that way. The connections stay open, and are closed
// when it is over.
func drops(directions ...direction) func(*rand.Rand) []toxic {
	return func(*rand.Rand) (all []toxic) {
		for _, w := range directions {
			all = append(all, toxic{"timeout", w, map[string]int{"timeout": 0}})
		}
		return all
	}
}

// cutsOff ends each connection after a few more bytes that way: none, or enough for some
// of a message, or for a connection to be made anew and then cut.
func cutsOff(to direction) func(*rand.Rand) []toxic {
	return func(r *rand.Rand) []toxic {
		most := []int{1, 50, 2000, 30_000}
		return []toxic{{"limit_data", to, map[string]int{"bytes": r.IntN(most[r.IntN(len(most))])}}}
	}
}

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
