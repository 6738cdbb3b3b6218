package store

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// sqlBegin does not leave the isolation to the database's default: under a
// stricter one the rows that a batch waited for would fail it.
const sqlBegin = "begin isolation level read committed"

// load is the first round trip. The names must be in order. It reads what is
// beside the anchors of those expected to be crowded; a further trip does for
// those that nobody expected.
func (t *tx) load(ctx context.Context, w *wanted) error {
	crowd := make(map[string]lock.State)
	b := &pgx.Batch{}
	b.Queue(sqlBegin)
	b.Queue(sqlSettings, strconv.FormatInt(rowTimeout.Milliseconds(), 10))
	b.Queue(sqlCreateAnchors, w.names)
	b.Queue(sqlLockAnchors, w.names).Query(t.scanAnchors)
	b.Queue(sqlEpoch).QueryRow(func(row pgx.Row) (err error) {
		t.epoch, err = scanEpoch(row)
		return err
	})
	b.Queue(sqlMark, markSpace)
	if len(w.crowded) > 0 {
		queueCrowd(b, w.crowded, w.lenience, crowd)
	}
	b.Queue(sqlDraw, w.tokens, w.events).QueryRow(func(row pgx.Row) error {
		return row.Scan(&t.now, &t.tokens, &t.ids)
	})
	if len(w.refs) > 0 {
		b.Queue(sqlEndings, w.refs).Query(t.scanEndings)
	}
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	t.now = t.now.UTC()
	if err := t.epoch.check(w.known); err != nil {
		return err
	}
	if len(t.locks) < len(w.names) {
		return errVanished
	}
	t.seat(w.crowded, crowd)
	return t.loadRest(ctx, w.lenience)
}

// scanAnchors notes in before, for now, the locks that have more than an anchor.
func (t *tx) scanAnchors(rows pgx.Rows) error {
	for rows.Next() {
		var r row
		if err := rows.Scan(r.targets()...); err != nil {
			return err
		}
		t.locks[r.name] = r.state()
		if r.queued > 0 || r.sitting > 0 {
			t.before[r.name] = lock.State{}
		}
	}
	return rows.Err()
}

// queueCrowd queues the reading of what is beside the anchors of the names.
func queueCrowd(b *pgx.Batch, names []string, lenience time.Duration, crowd map[string]lock.State) {
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
func queueWaiters(b *pgx.Batch, names []string, lenience time.Duration, crowd map[string]lock.State) {
	b.Queue(sqlReadQueue, names, lenience).Query(func(rows pgx.Rows) error {
		waiters, err := pgx.CollectRows(rows, scanWaiter)
		for _, w := range waiters {
			s := crowd[w.Want.Name]
			s.Queue = append(s.Queue, w)
			crowd[w.Want.Name] = s
		}
		return err
	})
}

// seat completes the locks of the names with what was read beside their anchors.
func (t *tx) seat(names []string, crowd map[string]lock.State) {
	for _, name := range names {
		s, more := t.locks[name], crowd[name]
		s.Leases, s.Queue = append(s.Leases, more.Leases...), more.Queue
		t.locks[name] = s
		if crowded(s) {
			t.before[name] = s
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
	crowd := make(map[string]lock.State)
	b := &pgx.Batch{}
	queueCrowd(b, rest, lenience, crowd)
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	t.seat(rest, crowd)
	return nil
}

// crowded is whether there is more to the lock than its anchor.
func crowded(s lock.State) bool {
	return len(s.Queue) > 0 || len(s.Leases) > 1 || len(s.Leases) == 1 && s.Leases[0].Slot > 0
}

func (t *tx) scanEndings(rows pgx.Rows) error {
	events, err := pgx.CollectRows(rows, scanEvent)
	for _, e := range events {
		t.ended[e.Ref] = e
	}
	return err
}
