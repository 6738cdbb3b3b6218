package store

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// sqlBegin does not leave the isolation to the database's default: under a
// stricter one the rows that a batch waited for would fail it.
const sqlBegin = "begin isolation level read committed"

// queueSettings queues what has a batch wait for a locked row so long at most, for its
// transaction alone.
func queueSettings(b *pgx.Batch, patience time.Duration) {
	b.Queue(sqlSettings, milliseconds(patience), true)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// load is the first round trip. The names must be in order. It reads what is
// beside the anchors of those expected to be crowded; a further trip does for
// those that nobody expected.
func (t *tx) load(ctx context.Context, w *wanted) error {
	crowd := make(map[string]lock.Record)
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	if w.settings {
		queueSettings(b, rowTimeout)
	}
	if len(w.unseen) > 0 {
		b.Queue(sqlCreateAnchors, w.unseen)
	}
	b.Queue(sqlLockAnchors, w.names).Query(t.scanAnchors)
	if len(w.crowded) > 0 {
		queueCrowd(b, w.crowded, w.lenience, crowd)
	}
	b.Queue(sqlDraw, w.tokens, w.events, markSpace).QueryRow(func(row pgx.Row) (err error) {
		t.epoch, err = scanEpoch(row, &t.now, &t.tokens, &t.ids, &t.xid)
		return err
	})
	if len(w.refs) > 0 {
		b.Queue(sqlEndings, w.refs).Query(t.scanEndings)
	}
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	t.now = t.now.UTC()
	t.clock = reading{shown: t.now, after: t.began, before: time.Now()}
	if err := t.epoch.check(w.known); err != nil {
		return err
	}
	if len(t.locks) < len(w.names) {
		return errVanished
	}
	t.seat(w.crowded, crowd)
	t.recall(w.remembered)
	return t.loadRest(ctx, w.lenience)
}

// loadEndings reads how the leases ended that calls are about and that are not there.
func (t *tx) loadEndings(ctx context.Context, calls []*call) error {
	var refs []int64
	for _, c := range calls {
		if id, about := leaseOf(c.Req); about && !t.has(c.Req.Names()[0], id) {
			refs = appendRefs(refs, c.Req)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	rows, err := t.conn.Query(ctx, sqlEndings, refs)
	if err != nil {
		return err
	}
	return t.scanEndings(rows)
}

// leaseOf returns the lease that the command is about, if it is about one that there is.
func leaseOf(cmd lock.Command) (lock.LeaseID, bool) {
	switch c := cmd.(type) {
	case lock.Renew:
		return c.LeaseID, true
	case lock.Release:
		return c.LeaseID, true
	case lock.Claim:
		return c.LeaseID, true
	case lock.Leave:
		return c.LeaseID, true
	}
	return lock.LeaseID{}, false
}

// has reports whether the lease is there or waited for, as the lock was loaded. A revoked
// lease has ended: how is for loadEndings to read.
func (t *tx) has(name string, id lock.LeaseID) bool {
	s := t.locks[name]
	return slices.ContainsFunc(s.Leases, func(l lock.Lease) bool { return l.ID == id && !l.Revoked() }) ||
		slices.ContainsFunc(s.Queue, func(w *lock.Waiter) bool { return w.Lease.ID == id })
}

// scanAnchors notes in before, for now, the locks that have more than an anchor.
func (t *tx) scanAnchors(rows pgx.Rows) error {
	for rows.Next() {
		var r row
		var a anchor
		if err := rows.Scan(append(r.targets(), &a.at, &a.version)...); err != nil {
			return err
		}
		t.locks[r.name], t.anchors[r.name] = r.state(), a
		if r.queued > 0 || r.sitting > 0 {
			t.before[r.name] = lock.Record{}
		}
	}
	return rows.Err()
}

// queueCrowd queues the reading of what is beside the anchors of the names.
func queueCrowd(b *pgx.Batch, names []string, lenience time.Duration, crowd map[string]lock.Record) {
	b.Queue(sqlReadSlots, names).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var r row
			if err := rows.Scan(r.targets()...); err != nil {
				return err
			}
			s := crowd[r.name]
			s.Leases = append(s.Leases, r.lease())
			crowd[r.name] = s
		}
		return rows.Err()
	})
	queueWaiters(b, names, lenience, crowd)
}

// queueWaiters queues the reading of who waits for the names. For as long as the
// lenience the replicas of waiters are taken to live.
func queueWaiters(b *pgx.Batch, names []string, lenience time.Duration, crowd map[string]lock.Record) {
	b.Queue(sqlReadQueue, names, lenience).Query(func(rows pgx.Rows) error {
		waiters, err := pgx.CollectRows(rows, scanWaiter)
		for _, w := range waiters {
			s := crowd[w.Lease.Name]
			s.Queue = append(s.Queue, w)
			crowd[w.Lease.Name] = s
		}
		return err
	})
}

// seat completes the locks of the names with what was read beside their anchors.
func (t *tx) seat(names []string, crowd map[string]lock.Record) {
	for _, name := range names {
		s, more := t.locks[name], crowd[name]
		s.Leases, s.Queue = append(s.Leases, more.Leases...), more.Queue
		t.locks[name] = s
		if crowded(s) {
			t.before[name] = s
		}
	}
}

// recall completes locks with what is remembered of them, if it still is so.
func (t *tx) recall(remembered map[string]memory) {
	for name, m := range remembered {
		if m.version == t.anchors[name].version && m.epoch == t.epoch.number {
			t.locks[name], t.before[name] = m.state, m.state
		}
	}
}

// loadRest reads what is beside the anchors of locks that nobody expected to be
// crowded.
func (t *tx) loadRest(ctx context.Context, lenience time.Duration) error {
	var rest []string
	for name, s := range t.before {
		if !crowded(s) {
			rest = append(rest, name)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	crowd := make(map[string]lock.Record)
	b := &pgx.Batch{}
	queueCrowd(b, rest, lenience, crowd)
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	t.seat(rest, crowd)
	return nil
}

// crowded is whether there is more to the lock than its anchor.
func crowded(s lock.Record) bool {
	return len(s.Queue) > 0 || len(s.Leases) > 1 || len(s.Leases) == 1 && s.Leases[0].Slot > 0
}

func (t *tx) scanEndings(rows pgx.Rows) error {
	events, err := pgx.CollectRows(rows, scanEvent)
	for _, e := range events {
		t.ended[e.Ref] = e
	}
	return err
}
