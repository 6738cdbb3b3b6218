package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxRecent is how many locks a connection remembers at most.
	maxRecent = 100_000
	// maxRecentMetadata is how many bytes of metadata the lease of such a lock has at most.
	maxRecentMetadata = 256
)

// recents is what a connection remembers: how its transactions left locks, or it has found them,
// and the epoch that they were decided in. It ends with the connection, so there can have been no crash of the
// database since, and no fail-over. What others have changed meanwhile the xid tells, and
// sql/swap.sql compares it.
type recents struct {
	statements map[string]*pgconn.StatementDescription // the swap's, prepared when they are first needed
	element    uint32                                  // the oid of paddock.swap
	started    time.Time                               // the server that the connection leads to

	epoch epoch
	clock reading
	// Whoever is remembered again moves to the young; when these are many they become the
	// old, and the old are forgotten.
	young, old map[string]recent

	ended bool
}

// A recent is a lock, and its anchor as a transaction left it.
type recent struct {
	state lock.Record
	anchor
}

// over is whether it has a lease that is.
func (r recent) over(now time.Time) bool {
	return slices.ContainsFunc(r.state.Leases, func(l lock.Lease) bool { return !l.EndsAt().After(now) })
}

// recentsKey is where a connection has its recents.
const recentsKey = "paddock.recents"

// recentsOf returns what the connection remembers, nil if it is not to.
func recentsOf(conn *pgx.Conn) *recents {
	r, _ := conn.PgConn().CustomData()[recentsKey].(*recents)
	return r
}

// newRecents has the connection remember from now on; or never, if it fails.
func newRecents(ctx context.Context, conn *pgx.Conn) (*recents, error) {
	r := &recents{ended: true}
	conn.PgConn().CustomData()[recentsKey] = r
	if err := conn.QueryRow(ctx, sqlSwapType).Scan(&r.element, &r.started); err != nil {
		return nil, err
	}
	r.statements = make(map[string]*pgconn.StatementDescription)
	if _, err := r.prepared(ctx, conn, sqlSwap); err != nil {
		return nil, err
	}
	r.young, r.ended = make(map[string]recent), false
	return r, nil
}

// prepared returns the statement, which is prepared if it was not yet.
func (r *recents) prepared(ctx context.Context, conn *pgx.Conn, sql string) (*pgconn.StatementDescription, error) {
	if s := r.statements[sql]; s != nil {
		return s, nil
	}
	s, err := conn.PgConn().Prepare(ctx, fmt.Sprintf("paddock_swap_%d", len(r.statements)), sql, nil)
	if err == nil {
		r.statements[sql] = s
	}
	return s, err
}

// end has the connection remember nothing from now on.
func (r *recents) end() { *r = recents{ended: true} }

// get returns the lock if it is remembered.
func (r *recents) get(name string) (recent, bool) {
	l, ok := r.young[name]
	if !ok {
		l, ok = r.old[name]
	}
	return l, ok
}

// put remembers the lock, if that makes sense.
func (r *recents) put(s lock.Record, a anchor, self lock.Replica) {
	if !memorable(s, self) {
		r.drop(s.Name)
		return
	}
	if len(r.young) >= maxRecent/2 {
		r.young, r.old = make(map[string]recent), r.young
	}
	r.young[s.Name] = recent{state: s, anchor: a}
}

// drop forgets the lock.
func (r *recents) drop(name string) {
	delete(r.young, name)
	delete(r.old, name)
}

// note hears how a transaction left its locks.
func (r *recents) note(t *tx) {
	if r.ended {
		return
	}
	for name, s := range t.locks {
		r.put(s, t.anchor(name), t.self)
	}
	r.epoch = t.epoch
	r.clock = t.clock
}

// memorable is whether the lock can be decided on from memory: it has an exclusive lease of
// which its holder knows, or none, and nobody waits for it with another replica. How a revoked
// lease ended is in its event, which a swap does not read.
func memorable(s lock.Record, self lock.Replica) bool {
	if len(s.Leases) > 1 || s.Capacity != 0 {
		return false
	}
	for i := range s.Leases {
		if l := &s.Leases[i]; l.Mode != lock.Exclusive || l.Unclaimed() || l.Revoked() || l.Token != s.Token || !exact(l) || len(l.Metadata) > maxRecentMetadata {
			return false
		}
	}
	return waitsHere(s.Queue, self)
}

// waitsHere is whether the replica serves all who wait. Others live for as long as their
// tables say.
func waitsHere(queue []*lock.Waiter, self lock.Replica) bool {
	for _, w := range queue {
		if w.GrantedUnclaimed || w.Replica != 0 && w.Replica != self || !exact(&w.Lease) || len(w.Lease.Metadata) > maxRecentMetadata {
			return false
		}
	}
	return true
}

// plain is whether there is no more to a memorable lock than its anchor.
func plain(s lock.Record) bool { return len(s.Queue) == 0 }

// exact is whether the table has the lease as it is: it counts in milliseconds and tells
// instants in microseconds.
func exact(l *lock.Lease) bool {
	return l.TTL%time.Millisecond == 0 && l.Grace%time.Millisecond == 0 && l.MaxHold%time.Millisecond == 0 &&
		l.ExpiresAt.Nanosecond()%1000 == 0
}

// A reading is what the database's clock showed at some instant from after to before, on
// this process's clock.
type reading struct {
	shown         time.Time
	after, before time.Time
}

// at returns what the database's clock shows at that instant of this process's, or less.
func (r reading) at(t time.Time) time.Time {
	return r.shown.Add(max(t.Sub(r.before), 0)).Truncate(time.Microsecond)
}

// better returns the reading to go on with: the one that tells more narrowly when it was, unless
// clocks may have gone apart by more since.
func (r reading) better(newer reading) reading {
	const drift = 1000 // a part in so many
	if newer.width() <= r.width()+newer.before.Sub(r.before)/drift {
		return newer
	}
	return r
}

func (r reading) width() time.Duration { return r.before.Sub(r.after) }
