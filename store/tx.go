package store

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// An outcome is a decision with the moment on this process's clock at which the
// deciding began.
type outcome struct {
	lock.Decision
	began time.Time
	place int64 // of the call in the queue, if it waits
}

// until turns an instant of the database's clock into one of this process's,
// never later than the true one.
func (o outcome) until(t time.Time) time.Time { return o.began.Add(t.Sub(o.Now)) }

// errVanished says that an anchor was pruned between its creation and its locking.
var errVanished = errors.New("a lock was pruned concurrently")

// An anchor is a row that is locked: where it is, and the xid of who wrote it.
type anchor struct {
	at      pgtype.TID
	version uint32
}

// ends are the last events that refer to leases which are over.
type ends map[lock.LeaseRef]lock.Event

// with returns e and those of the events that do.
func (e ends) with(events []lock.Event) ends {
	for _, event := range events {
		if event.Ref == 0 {
			continue
		}
		if e == nil {
			e = make(ends)
		}
		e[event.Ref] = event
	}
	return e
}

// A tx is the transaction of one batch.
type tx struct {
	conn *pgx.Conn
	self lock.Replica

	began   time.Time
	clock   reading // of the database's, in the first round trip
	now     time.Time
	tokens  []int64
	ids     []int64
	locks   map[string]lock.Record
	anchors map[string]anchor
	moved   map[pgtype.TID]pgtype.TID // where anchors are that were written, by where they were
	before  map[string]lock.Record    // the locks that were crowded, as they were loaded
	ended   ends
	epoch   epoch
	xid     uint32 // of the transaction

	greatest int64         // of the tokens taken
	longest  time.Duration // TTL and grace of a lease that is granted or renewed
	changed  map[string]bool
	events   eventRows
	confirm  bool // somebody is told that something is so

	drawing error // that the decision could not draw what it needed
}

func newTx(conn *pgx.Conn, self lock.Replica) *tx {
	return &tx{
		conn: conn, self: self, began: time.Now(), locks: make(map[string]lock.Record), anchors: make(map[string]anchor),
		before: make(map[string]lock.Record), ended: make(ends), moved: make(map[pgtype.TID]pgtype.TID), changed: make(map[string]bool),
	}
}

// apply has the command decide, on the locks as the commands before left them.
func (t *tx) apply(ctx context.Context, cmd lock.Command) (outcome, error) {
	v := lock.View{
		Now: t.now, Self: t.self, Ended: t.ended, GrantsPausedUntil: t.epoch.closedUntil,
		Tokens: func() lock.Token { return t.token(ctx) },
	}
	for _, name := range cmd.Names() {
		v.Locks = append(v.Locks, t.locks[name])
	}
	d := cmd.Apply(v)
	if missing := len(d.Events) - len(t.ids); missing > 0 && t.drawing == nil {
		t.draw(ctx, 0, missing)
	}
	if t.drawing != nil {
		return outcome{}, t.drawing
	}
	for i, e := range d.Events {
		e.ID = t.ids[i]
		t.events.add(e)
	}
	t.ended = t.ended.with(d.Events)
	t.ids = t.ids[len(d.Events):]
	for _, s := range d.Locks {
		t.locks[s.Name] = s
		t.changed[s.Name] = t.changed[s.Name] || d.Changed
	}
	t.longest = max(t.longest, longestOf(d))
	t.confirm = t.confirm || d.Changed || confirms(cmd, d)
	return outcomeOf(cmd, d, t.began), nil
}

// outcomeOf returns what the command's caller needs of the decision. The queue is not
// part of it, except to tell how long it is: as many as a batch has calls would have as
// many queues be kept until it is committed.
func outcomeOf(cmd lock.Command, d lock.Decision, began time.Time) outcome {
	o := outcome{Decision: d, began: began}
	switch c := cmd.(type) {
	case lock.Revoke:
		return o
	case acquireCall:
		o.place = placeOf(d, c.LeaseID)
	case lock.Claim:
		o.place = placeOf(d, c.LeaseID)
	}
	if slices.ContainsFunc(d.Locks, func(s lock.Record) bool { return s.Queue != nil }) {
		o.Locks = slices.Clone(d.Locks)
		for i := range o.Locks {
			o.Locks[i].Queue = nil
		}
	}
	return o
}

// placeOf returns the place of the lease id in the queue that was decided on, zero if
// it has none. Who came last is at the end.
func placeOf(d lock.Decision, id lock.LeaseID) int64 {
	if !d.Queued {
		return 0
	}
	for _, w := range slices.Backward(d.Locks[0].Queue) {
		if w.Lease.ID == id {
			return w.Place
		}
	}
	return 0
}

// confirms is whether somebody rests on the answer. A sweep has nobody to answer,
// and a call that still waits is not told.
func confirms(cmd lock.Command, d lock.Decision) bool {
	_, unasked := cmd.(lock.Sweep)
	return d.Err == nil && !d.Queued && !unasked
}

// drawnAhead is how many tokens are drawn when those foreseen were too few: a
// round trip for a whole phase of readers or permits rather than for each.
const drawnAhead = 16

// token takes the next of the tokens drawn.
func (t *tx) token(ctx context.Context) lock.Token {
	if len(t.tokens) == 0 && t.drawing == nil {
		t.draw(ctx, drawnAhead, 0)
	}
	if t.drawing != nil {
		return 0
	}
	token := t.tokens[0]
	t.tokens = t.tokens[1:]
	t.greatest = max(t.greatest, token)
	return lock.Token(token)
}

// draw draws more, in a round trip of its own. That is as good as at the
// beginning: the rows are locked, and the mark stands below what is drawn now.
func (t *tx) draw(ctx context.Context, tokens, events int) {
	var moreTokens, moreIDs []int64
	t.drawing = t.conn.QueryRow(ctx, sqlDrawMore, tokens, events).Scan(&moreTokens, &moreIDs)
	t.tokens, t.ids = append(t.tokens, moreTokens...), append(t.ids, moreIDs...)
}

// save is the second round trip. A batch that only refused is rolled back: it
// promises nothing, and needs no flush. One that confirms what was so before
// commits all the same, so that what it confirms is as durable as a grant.
func (t *tx) save(ctx context.Context) error {
	if !t.confirm {
		rollback(t.conn)
		return nil
	}
	forget(t.conn)
	b := &pgx.Batch{}
	t.queueChanges(b)
	b.Queue("commit")
	if err := t.conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	return confirmed(t.conn)
}

// queueChanges queues the statements that write what has changed. Most batches
// change anchors and events only.
func (t *tx) queueChanges(b *pgx.Batch) {
	var a anchors
	var bare bareAnchors
	var s slots
	var w waiters
	for name, changed := range t.changed {
		if changed {
			now, before := t.locks[name], t.before[name]
			if inline, ok := inlineLease(now); ok {
				a.add(t.anchors[name].at, now, inline)
			} else {
				bare.add(t.anchors[name].at, now)
			}
			if crowded(now) || crowded(before) {
				s.add(name, before.Leases, now.Leases)
				w.add(name, before.Queue, now.Queue)
			}
		}
	}
	for _, q := range queueRows(b, len(a.at), sqlSaveAnchor, sqlSaveAnchors, a.args()) {
		q.Query(t.scanMoved)
	}
	for _, q := range queueRows(b, len(bare.at), sqlSaveBare, sqlSaveBares, bare.args()) {
		q.Query(t.scanMoved)
	}
	queueRows(b, len(s.dropped.names), sqlDropSlots, sqlDropSlots, s.dropped.args())
	queueRows(b, len(s.names), sqlSaveSlots, sqlSaveSlots, s.args())
	queueRows(b, len(w.dropped.names), sqlDropWaiters, sqlDropWaiters, w.dropped.args())
	queueRows(b, len(w.names), sqlSaveWaiter, sqlSaveWaiters, w.args())
	queueRows(b, len(t.events.ids), sqlSaveEvent, sqlSaveEvents, t.events.args())
}

// scanMoved notes where the anchors are that were written.
func (t *tx) scanMoved(rows pgx.Rows) error {
	for rows.Next() {
		var was, is pgtype.TID
		if err := rows.Scan(&was, &is); err != nil {
			return err
		}
		t.moved[was] = is
	}
	return rows.Err()
}

// anchor returns the lock's, as it is once the transaction is committed.
func (t *tx) anchor(name string) anchor {
	a := t.anchors[name]
	if t.changed[name] {
		a = anchor{at: t.moved[a.at], version: t.xid}
	}
	return a
}

// queueRows queues the writing of n rows, given as a slice a column, and returns the
// statements. The one for a row takes the values themselves, unless it is the same as that for many: where it is not,
// that is quicker for a few rows than the unnesting of their columns.
func queueRows(b *pgx.Batch, n int, one, many string, columns []any) []*pgx.QueuedQuery {
	switch {
	case n == 0:
		return nil
	case n <= fewRows && one != many:
		queued := make([]*pgx.QueuedQuery, n)
		for i := range n {
			queued[i] = b.Queue(one, rowOf(columns, i)...)
		}
		return queued
	}
	return []*pgx.QueuedQuery{b.Queue(many, columns...)}
}

// fewRows is how many rows are written faster one by one.
const fewRows = 2

func rowOf(columns []any, i int) []any {
	row := make([]any, len(columns))
	for j, column := range columns {
		row[j] = reflect.ValueOf(column).Index(i).Interface()
	}
	return row
}
