package row

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

const (
	// MaxLag is how far the database's clock may be ahead of a decision when it is written, not counting a wait for a
	// locked row.
	MaxLag = database.RowTimeout
	// TooLate is the SQLSTATE of a swap that waited for a row until one of its decisions did not hold any more, or
	// that could not write all of its changes though some belong together.
	TooLate = "PD001"
	// markSpace is MarkSpace of the default schema.
	markSpace int64 = 0x5ADE << 48
	// MarkMask selects the batch id in the key of a mark.
	MarkMask int64 = 1<<48 - 1
)

// MarkSpace returns the upper part of the keys of marks in the schema, see sql/swap.sql. The lower 48 bits are a
// batch id. Two schemas of a database share a space with a probability of 2⁻¹⁵; then a mark of one may delay the
// readers of events of both until its transaction ends.
func MarkSpace(in schema.Name) int64 { return in.Key(markSpace) &^ MarkMask }

// A Change is what a batch decided about one lock.
type Change struct {
	At       time.Time // the instant of the decision, or of the last one of several
	Before   *Row
	After    lock.Record // may be the same: then the record is written as it is
	Events   []lock.Event
	NotEnded []lock.LeaseRef // leases that must not have ended
	// FirstToken is the number, in the Swap, of the token that lock.Provisional(0) stands for: a Swap has
	// TokensPerBatch.
	FirstToken int
	// Sessions are those of Before, and those of the commands.
	Sessions Sessions
	// OpenSessions are the sessions that must not have ended: those of commands that may begin something in them.
	OpenSessions []lock.SessionRef
	// SessionLosses are the sessions that lose leases by the change, each as often as it does. It must have an event.
	SessionLosses []lock.SessionRef

	Written   bool // set by Run: the lock was as in Before
	tid       pgtype.TID
	xmin      uint32
	lastEvent int64
}

// Left returns the lock as it is now. The change must be Written.
func (c *Change) Left() *Row {
	return &Row{
		Record: c.After, TID: c.tid, Xmin: c.xmin, LastEvent: c.lastEvent, Sessions: c.Sessions,
	}
}

// A Swap writes changes to locks whose records are still the rows of the decision.
type Swap struct {
	Now     time.Time   // the instant of the latest decision
	Latest  time.Time   // the last one at which they may be written, at most MaxLag after the earliest
	Epoch   epoch.Epoch // that they were made in, and the server that the Rows were read from
	Changes []*Change
	// Commit is set where a transaction is open, in which the rows are locked: it is committed.
	Commit bool
	// AllOrNone: some of the changes belong together, so either all are written or none. If a lock has changed, Run fails
	// with TooLate.
	AllOrNone bool
	Schema    schema.Name
	// Pooled says that there is a pooler in transaction mode: the transaction brings its settings along.
	Pooled bool
}

// A Written is what a Swap returns.
type Written struct {
	Clock time.Time // what the database's clock showed; zero if nothing was written
	Batch int64     // the row of events that was written; zero: none was
}

// Token returns the token that is the n-th of the Swap.
func (w Written) Token(n int) lock.Token { return epoch.FirstToken(w.Batch) + lock.Token(n) }

// LastEvent returns the greatest id that an event of the Swap can have, zero if there was none.
func (w Written) LastEvent() int64 {
	if w.Batch == 0 {
		return 0
	}
	return (w.Batch+1)*EventsPerBatch - 1
}

// Run writes the changes, and marks those that were written. It is one round trip, which commits.
func (s *Swap) Run(ctx context.Context, conn *pgx.Conn) (w Written, err error) {
	text, args := s.encode()
	b := &pgx.Batch{}
	if s.Pooled && !s.Commit {
		database.QueueSettings(b, database.RowTimeout)
	}
	b.Queue(text, args...).Query(func(rows pgx.Rows) error { return s.scan(rows, &w) })
	if s.Commit {
		b.Queue("commit")
	}
	return w, database.CommitBatch(ctx, conn, b)
}

func (s *Swap) scan(rows pgx.Rows, w *Written) error {
	var ord, batch int64
	var tid pgtype.TID
	var xmin uint32
	_, err := pgx.ForEachRow(rows, []any{&ord, &tid, &xmin, &w.Clock, &batch}, func() error {
		c := s.Changes[ord-1]
		c.Written, c.tid, c.xmin, c.lastEvent = true, tid, xmin, c.Before.LastEvent
		if len(c.Events) > 0 {
			c.lastEvent, w.Batch = batch, batch
		}
		return nil
	})
	w.Clock = w.Clock.UTC()
	return err
}

// A write is what sql/swap.sql compares a record with, and writes.
type write struct {
	tid    pgtype.TID
	xmin   pgtype.Uint32
	until  pgtype.Timestamptz // the decision does not hold from then on
	events pgtype.Bool        // whether there are any
	storedRecord
}

// columns appends the columns to others.
func (w *write) columns(to []column) []column {
	return w.storedRecord.columns(append(to, []column{
		{"tid", "tid", &w.tid}, {"xmin", "xid", &w.xmin}, {"until", "timestamptz", &w.until},
		{"has_events", "boolean", &w.events},
	}...))
}

// ofChange returns the column that comes before those of a row that belongs to a change: the number of the change.
func ofChange(ord int) []column {
	n := integer(ord)
	return []column{{"ord", "integer", &n}}
}

// endingOf returns the columns of a lease that must not have ended.
func endingOf(ord int, ref lock.LeaseRef) []column {
	key := bigint(int64(ref))
	return append(ofChange(ord), column{"key", "bigint", &key})
}

// openOf returns the column of a session that must not have ended.
func openOf(ref lock.SessionRef) []column {
	r := bigint(int64(ref))
	return []column{{"ref", "bigint", &r}}
}

// lossOf returns the columns of a lease that a session has lost.
func lossOf(ord int, session lock.SessionRef) []column {
	ref := bigint(int64(session))
	return append(ofChange(ord), column{"ref", "bigint", &ref})
}

// entryOf returns the columns of the events of a change.
func entryOf(ord int, entry []byte) []column {
	return append(ofChange(ord), column{"entry", "json", &entry})
}

// arrays are the columns of some rows, as parameters of unnest. The elements are pointers, which pgx follows.
type arrays []pgtype.FlatArray[any]

// add adds a row. There will be about n.
func (a *arrays) add(row []column, n int) {
	if *a == nil {
		all := make([]any, n*len(row))
		for i := range row {
			*a = append(*a, all[i*n:i*n:(i+1)*n])
		}
	}
	for i, c := range row {
		(*a)[i] = append((*a)[i], c.value)
	}
}

// A writing is the parameters of sql/swap.sql that are arrays.
type writing struct {
	changes int
	sets    [swapSets]arrays
	events  int      // in all entries
	row     []column // used again for each write
}

// add adds a row to a set. Most sets have about one row a change, or none.
func (w *writing) add(set int, row []column) { w.sets[set].add(row, w.changes) }

// encode returns the statement and its parameters.
func (s *Swap) encode() (text string, args []any) {
	w := writing{changes: len(s.Changes), row: make([]column, 0, len(writeColumns))}
	for i, change := range s.Changes {
		w.addChange(i+1, change, s.Now)
	}
	latest := timestamp(s.Latest)
	if s.Commit { // the rows are locked, so nothing has changed since
		latest = infinity
	}
	closed := pgtype.Timestamptz{Time: s.Epoch.ClosedUntil, Valid: !s.Epoch.ClosedUntil.IsZero()}
	args = []any{
		s.Now, latest, s.Epoch.Started, s.Epoch.Number, closed, s.Epoch.Longest.Milliseconds(), MarkSpace(s.Schema), len(s.Changes),
		s.Epoch.PolicyChanges,
	}
	v := variant{
		Endings: w.sets[endings] != nil, Parts: w.sets[drops] != nil || w.sets[saves] != nil, Events: w.sets[entries] != nil,
		Sessions: w.sets[sessions] != nil, Losses: w.sets[losses] != nil, Single: len(s.Changes) == 1, AllOrNone: s.AllOrNone && len(s.Changes) > 1,
	}
	for i, set := range inSwap {
		for j := range set.columns {
			switch all := w.sets[i]; {
			case !v.has(i):
			case all == nil:
				args = append(args, pgtype.FlatArray[any]{})
			case v.plain(i):
				args = append(args, all[j][0])
			default:
				args = append(args, all[j])
			}
		}
	}
	return sqlSwaps[v].In(s.Schema), args
}

var infinity = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}

func (w *writing) addChange(ord int, change *Change, now time.Time) {
	before, after := &change.Before.Record, &change.After
	for _, ref := range change.NotEnded {
		w.add(endings, endingOf(ord, ref))
	}
	for _, ref := range change.OpenSessions {
		w.add(sessions, openOf(ref))
	}
	for _, ref := range change.SessionLosses {
		w.add(losses, lossOf(ord, ref))
	}
	ended, given := differing(before.Leases, after.Leases)
	row := &write{
		tid: change.Before.TID, xmin: pgtype.Uint32{Uint32: change.Before.Xmin, Valid: true},
		until: deadline(before.Leases, ended, given, change.At), events: pgtype.Bool{Bool: len(change.Events) > 0, Valid: true}, storedRecord: storeRecord(after),
	}
	row.token = bigint(stored(after.Token, change.FirstToken))
	w.row = row.columns(w.row[:0])
	w.add(writes, w.row)
	if len(change.Events) > 0 {
		w.add(entries, entryOf(ord, appendEntry(nil, after.Name, change.Before.LastEvent, w.events, change.FirstToken, change.Events, now)))
		w.addReferences(ord, change)
		w.events += len(change.Events)
	}
	for _, l := range savedLeases(before, after, given) {
		delete(ended, l.Slot)
		part := leasePart(after.Name, l)
		part.token = bigint(stored(l.Token, change.FirstToken))
		w.add(saves, part.columns(ofChange(ord)))
	}
	if l := inline(before); l != nil {
		delete(ended, l.Slot) // it was no part
	}
	for slot := range ended {
		w.drop(ord, after.Name, slot, 0)
	}
	w.addWaiters(ord, before, after)
}

// savedLeases returns the leases that become parts with a change, or parts that change: those of given that are not
// inline, and the one that was inline before, if it stays and another one has the newest token now.
func savedLeases(before, after *lock.Record, given []*lock.Lease) []*lock.Lease {
	now := inline(after)
	saved := slices.DeleteFunc(given, func(l *lock.Lease) bool { return l == now })
	if old := inline(before); old != nil && now == nil {
		for i := range after.Leases {
			if l := &after.Leases[i]; l.Slot == old.Slot && sameLease(old, l) {
				saved = append(saved, l)
			}
		}
	}
	return saved
}

// addWaiters adds the waiters that differ. Both queues are in the order of places. A waiter that is the same in both
// costs one comparison, so a long queue with few changes is cheap.
func (w *writing) addWaiters(ord int, before, after *lock.Record) {
	left := before.Queue
	for _, waiter := range after.Queue {
		for len(left) > 0 && left[0].Place < waiter.Place {
			w.drop(ord, after.Name, 0, left[0].Place)
			left = left[1:]
		}
		if len(left) > 0 && left[0].Place == waiter.Place {
			old := left[0]
			if left = left[1:]; sameWaiter(old, waiter) {
				continue
			}
		}
		w.add(saves, waiterPart(after.Name, waiter).columns(ofChange(ord)))
	}
	for _, waiter := range left {
		w.drop(ord, after.Name, 0, waiter.Place)
	}
}

func (w *writing) drop(ord int, name string, slot int, place int64) {
	w.add(drops, partOf(name, slot, place).columns(ofChange(ord))[:len(dropColumns)])
}

// sameWaiter reports whether two waiters are equal in everything that a decision can change.
func sameWaiter(a, b *lock.Waiter) bool {
	return a == b || a.Attachment == b.Attachment && a.Replica == b.Replica && a.WaitUntil.Equal(b.WaitUntil) &&
		a.KeptUntil.Equal(b.KeptUntil) && a.GrantedUnclaimed == b.GrantedUnclaimed && a.Once == b.Once
}

// differing returns the leases that are only in one of two states of a lock: of the first, by their slots, and of the
// second.
func differing(before, after []lock.Lease) (ended map[int]*lock.Lease, given []*lock.Lease) {
	if len(before) > 0 {
		ended = make(map[int]*lock.Lease, len(before))
	}
	for i := range before {
		ended[before[i].Slot] = &before[i]
	}
	for i := range after {
		if l := &after[i]; ended[l.Slot] != nil && sameLease(ended[l.Slot], l) {
			delete(ended, l.Slot)
		} else {
			given = append(given, l)
		}
	}
	return ended, given
}

// sameLease reports whether two leases are equal in everything that a decision can change.
func sameLease(a, b *lock.Lease) bool {
	return a.ID == b.ID && a.Holder == b.Holder && a.Suspect == b.Suspect && a.ExpiresAt.Equal(b.ExpiresAt) && a.TTL == b.TTL && a.Left == b.Left && a.Token == b.Token && a.Attachment == b.Attachment &&
		a.ClaimDeadline.Equal(b.ClaimDeadline) && a.AcquiredAt.Equal(b.AcquiredAt) && bytes.Equal(a.Metadata, b.Metadata)
}

// deadline returns the instant before which a decision must be written: the earliest end of the leases that it changes
// and of those that it grants. A reader that shares a token also needs one of the leases with the token to be active: a
// token that was once found to have ended must not be used again.
func deadline(before []lock.Lease, ended map[int]*lock.Lease, given []*lock.Lease, now time.Time) pgtype.Timestamptz {
	first := infinity
	bound := func(end time.Time) {
		if now.Before(end) && (first == infinity || end.Before(first.Time)) {
			first = timestamp(end)
		}
	}
	for _, l := range given {
		bound(l.EndsAt())
		bound(endOf(l.Token, before))
	}
	for _, l := range ended {
		bound(l.EndsAt())
	}
	return first
}

// endOf returns when the last of the leases with the token ends, zero if there is none.
func endOf(token lock.Token, leases []lock.Lease) (last time.Time) {
	for i := range leases {
		if l := &leases[i]; l.Token == token && !l.Revoked() && l.EndsAt().After(last) {
			last = l.EndsAt()
		}
	}
	return last
}

// refOf returns the columns of a reference to an event: its key, and the number of the event in the batch.
func refOf(ord int, key int64, number int) []column {
	k, n := bigint(key), integer(number)
	return append(ofChange(ord), column{"key", "bigint", &k}, column{"number", "integer", &n})
}

// addReferences adds the references by which some of the events are found. The first event has the number w.events.
func (w *writing) addReferences(ord int, change *Change) {
	for i, e := range change.Events {
		if e.Ref != 0 {
			w.add(refs, refOf(ord, int64(e.Ref), w.events+i))
		}
	}
	if change.Before.Record.Revision/RefInterval != change.After.Revision/RefInterval {
		w.add(refs, refOf(ord, NameKey(change.After.Name), w.events+len(change.Events)-1))
	}
}

// An Outcome is a decision that is committed, or needs no commit.
type Outcome struct {
	lock.Decision
	Began time.Time // on this process's clock; no later than the Decision's Now
	Place int64     // of the call in the queue; zero if it does not wait
	// JoinedAt is when the place was joined, by this call or by an earlier one of the same acquire.
	JoinedAt time.Time
}

// Until returns the instant of this process's clock at which the database's clock shows t, or an earlier one.
func (o Outcome) Until(t time.Time) time.Time { return o.Began.Add(t.Sub(o.Now)) }
