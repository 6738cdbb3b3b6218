package waiters

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// suspiciousAfter is how long a place is waited at before the wait may be taken for one of a deadlock: most waits are
	// shorter. It is the place that counts, because a long wait may take many short calls.
	suspiciousAfter = time.Second
	// searchInterval is the mean time between two searches for deadlocks, while a call waits that long.
	searchInterval = 500 * time.Millisecond
	// restFactor is how many times as long as a search took no other one begins, on average, but for maxSearchRest; see
	// restAfter.
	restFactor = 20
	// maxSearchRest is the greatest mean time between two searches: while they take long, waiting calls do, too.
	maxSearchRest = time.Second
	// maxPairs bounds the pairs of locks of one search, and maxSuspects the locks that it reads.
	maxPairs    = 10_000
	maxSuspects = 1000
)

var sqlWaitsOfHolders = database.Statement(files, "waits_of_holders")

// searchForDeadlocks searches for deadlocks whose victims wait here, again and again. Each call that is a victim sends
// a lock.BreakDeadlock, which decides again. The victim is the same for each replica, so the others need not be told.
func (r *Registry) searchForDeadlocks() {
	before := time.Duration(0)
	for rest := searchInterval; r.db.Sleep(database.Jittered(rest)); {
		began := time.Now()
		r.db.Report("deadlocks", r.notifyVictims())
		took := time.Since(began)
		rest, before = restAfter(before, took), took
	}
}

// restAfter returns the mean time between two searches, of which the last ones took so long. The shorter one counts: a
// search that waited for a connection once says nothing about the cost of the next one.
func restAfter(before, took time.Duration) time.Duration {
	return min(max(searchInterval, restFactor*min(before, took)), maxSearchRest)
}

// notifyVictims searches once, and hands each call of this replica that is a victim the locks of its deadlock.
func (r *Registry) notifyVictims() error {
	names := r.suspects(time.Now().Add(-suspiciousAfter))
	if len(names) == 0 {
		return nil
	}
	var found []lock.Deadlock
	err := r.db.Within(func(ctx context.Context) error {
		locks, now, err := r.readSuspects(ctx, names)
		found = lock.FindDeadlocks(locks, now, r.self)
		return err
	})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, d := range found {
		if c := r.calls[d.Attachment]; c != nil && d.Replica == r.self {
			select {
			case c.deadlock <- d.Locks:
			default:
			}
		}
	}
	return nil
}

// suspects returns the locks of the calls whose places were joined by then, and that may be victims: those with a task.
func (r *Registry) suspects(since time.Time) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make(map[string]bool)
	for _, c := range r.calls {
		at := c.position.Load()
		if at == nil || at.place == 0 || at.since.After(since) || !c.hasTask {
			continue
		}
		for _, name := range at.names {
			names[name] = true
		}
	}
	return slices.Collect(maps.Keys(names))
}

// readSuspects returns those of the locks, and of the locks that their holders wait for, that may be in a deadlock.
func (r *Registry) readSuspects(ctx context.Context, names []string) (locks []lock.Record, now time.Time, err error) {
	pairs, err := r.readPairs(ctx, names, maxPairs)
	if err != nil {
		return nil, now, err
	}
	next := make(map[string]map[string]bool)
	for _, p := range pairs {
		if next[p.from] == nil {
			next[p.from] = make(map[string]bool)
		}
		next[p.from][p.to] = true
	}
	return r.readLocks(ctx, inCircles(next))
}

// A pair is two locks: a lease of the first one ends only after a wait at the second one.
type pair struct{ from, to string }

// readPairs returns the pairs that can be reached from the locks, at most limit: the nearest first.
func (r *Registry) readPairs(ctx context.Context, names []string, limit int) (pairs []pair, err error) {
	b := &pgx.Batch{}
	database.QueueNoJIT(b) // the planner expects many pairs of each lock; there are a few of all of them
	b.Queue(sqlWaitsOfHolders.In(r.db.Schema), names, limit).Query(func(rows pgx.Rows) error {
		var p pair
		_, err := pgx.ForEachRow(rows, []any{&p.from, &p.to}, func() error {
			pairs = append(pairs, p)
			return nil
		})
		return err
	})
	err = r.db.Rest.SendBatch(ctx, b).Close()
	return pairs, err
}

// Records returns the locks with their queues. Their leases are not over.
func (r *Registry) Records(ctx context.Context, names []string) ([]lock.Record, error) {
	all, _, err := r.readLocks(ctx, names)
	return all, err
}

// readLocks returns the locks with their queues, those that can be read, and when the last one was read. Their leases
// are not over.
func (r *Registry) readLocks(ctx context.Context, names []string) (locks []lock.Record, now time.Time, err error) {
	for _, name := range names {
		only := row.Only(name)
		only.Queue = true
		one, err := only.ReadOne(ctx, r.db.Rest, r.db.Schema, r.db.Outage.AssumeAlive())
		if errors.Is(err, database.ErrMalformed) {
			r.db.NoteMalformed(err)
			continue
		}
		if err != nil {
			return nil, now, err
		}
		one.Record.Leases = one.Record.ActiveLeases(one.Now)
		locks, now = append(locks, one.Record), one.Now
	}
	return locks, now, nil
}

// inCircles returns the names that are in a circle or between two circles, at most maxSuspects. It removes names that
// nothing leads to, and names that lead to nothing, until there are none.
func inCircles(next map[string]map[string]bool) []string {
	for again := true; again; {
		again = false
		reached := make(map[string]bool)
		for _, to := range next {
			for name := range to {
				reached[name] = true
			}
		}
		for name, to := range next {
			maps.DeleteFunc(to, func(name string, _ bool) bool { return next[name] == nil })
			if len(to) == 0 || !reached[name] {
				delete(next, name)
				again = true
			}
		}
	}
	names := slices.Sorted(maps.Keys(next))
	return names[:min(len(names), maxSuspects)]
}
