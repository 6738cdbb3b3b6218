package row

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

const (
	// MaxLag is how far the database's clock may be ahead of a decision when it is written, not counting a wait for a
	// locked row.
	MaxLag = database.RowTimeout
	// TooLate is the SQLSTATE of a swap that waited for a row until one of its decisions did not hold any more.
	TooLate = "PD001"
	// MarkSpace is the upper part of the key of the mark, see sql/swap.sql. The lower 48 bits are a batch id.
	MarkSpace int64 = 0x5ADE << 48
	// MarkMask selects the batch id in the key of a mark.
	MarkMask int64 = 1<<48 - 1
)

// A Change is what a batch decided about one lock.
type Change struct {
	At      time.Time // the instant of the decision, or of the last one of several
	Before  Row
	After   lock.Record // may be the same: then the record is written as it is
	Changed bool        // whether it is not
	Events  []lock.Event
	Unused  []lock.LeaseRef // leases that must not have ended

	Written bool // set by Run: the lock was as in Before
	Left    Row  // set by Run: the lock as it is now
}

// A Swap writes changes to locks whose records have the version of the decision.
type Swap struct {
	Oldest  time.Time   // the instant of the earliest decision
	Now     time.Time   // the instant of the latest
	Epoch   epoch.Epoch // that they were made in, and the server that the Rows were read from
	Changes []*Change
	Draw    int // tokens to draw for later
	// Commit is set where a transaction is open, in which the rows are locked: it is committed.
	Commit bool
	// Pooled says that there is a pooler in transaction mode: the transaction brings its settings along.
	Pooled bool
}

// A Written is what a Swap returns.
type Written struct {
	Clock  time.Time    // what the database's clock showed; zero if nothing was written
	Event  int64        // no event that was written has a greater id; zero: none was
	Tokens []lock.Token // none if nothing was written: the epoch may be another one
}

// Run writes the changes, and marks those that were written. It is one round trip, which commits.
func (s *Swap) Run(ctx context.Context, conn *pgx.Conn) (w Written, err error) {
	args, v, err := s.encode()
	if err != nil {
		return w, err
	}
	b := &pgx.Batch{}
	if s.Pooled && !s.Commit {
		database.QueueSettings(b, database.RowTimeout)
	}
	b.Queue(sqlSwaps[v], args...).Query(func(rows pgx.Rows) error { return s.scan(rows, &w) })
	if s.Draw > 0 {
		queueDraw(b, s.Draw, 0, func(tokens []lock.Token, started time.Time) {
			if started.Equal(s.Epoch.Started) && !w.Clock.IsZero() {
				w.Tokens = tokens
			}
		})
	}
	if s.Commit {
		b.Queue("commit")
	}
	return w, database.CommitBatch(ctx, conn, b)
}

func (s *Swap) scan(rows pgx.Rows, w *Written) error {
	var ord, batch int64
	var at pgtype.TID
	var version uint32
	_, err := pgx.ForEachRow(rows, []any{&ord, &at, &version, &w.Clock, &batch}, func() error {
		c := s.Changes[ord-1]
		c.Written = true
		c.Left = Row{Record: c.After, At: at, Version: version, LastEvent: c.Before.LastEvent, Floor: max(c.Before.Floor, c.After.Token)}
		if len(c.Events) > 0 {
			c.Left.LastEvent = batch
			w.Event = (batch+1)*EventsPerBatch - 1
		}
		return nil
	})
	w.Clock = w.Clock.UTC()
	return err
}

// columns are the parameters of sql/swap.sql that are arrays.
type columns struct {
	endedOrds []int32
	endedKeys []int64

	at       []pgtype.TID
	versions []pgtype.Uint32
	names    []string
	untils   []pgtype.Timestamptz
	entries  []*string
	keys     []*string
	numbers  []*string

	tokens, revisions []int64
	lastEnds          []int16
	changedAts        []time.Time
	parts             []int32
	lease             leaseParameters

	dropped struct {
		ords   []int32
		names  []string
		slots  []int32
		places []int64
	}
	saved struct {
		ords                         []int32
		names                        []string
		slots                        []int32
		places                       []int64
		unclaimed                    []bool
		tokens, attachments, replica []int64
		leaseParameters
	}

	event int // the number of the next one
}

// leaseParameters are arrays in the order of leaseColumns.
type leaseParameters struct {
	ids                 []pgtype.UUID
	modes               []pgtype.Int2
	holders             []pgtype.Text
	acquiredAt, expires []pgtype.Timestamptz
	ttls                []pgtype.Int8
	rests               []*string
}

func (p *leaseParameters) add(l *lock.Lease, r rest) error {
	text, err := r.text()
	p.rests = append(p.rests, text)
	if l == nil {
		p.ids, p.modes, p.holders = append(p.ids, pgtype.UUID{}), append(p.modes, pgtype.Int2{}), append(p.holders, pgtype.Text{})
		p.acquiredAt, p.expires = append(p.acquiredAt, pgtype.Timestamptz{}), append(p.expires, pgtype.Timestamptz{})
		p.ttls = append(p.ttls, pgtype.Int8{})
		return err
	}
	p.ids = append(p.ids, pgtype.UUID{Bytes: l.ID, Valid: true})
	p.modes = append(p.modes, pgtype.Int2{Int16: int16(l.Mode), Valid: true})
	p.holders = append(p.holders, pgtype.Text{String: l.Holder, Valid: true})
	p.acquiredAt = append(p.acquiredAt, pgtype.Timestamptz{Time: l.AcquiredAt, Valid: true})
	p.expires = append(p.expires, pgtype.Timestamptz{Time: l.ExpiresAt, Valid: true})
	p.ttls = append(p.ttls, pgtype.Int8{Int64: l.TTL.Milliseconds(), Valid: true})
	return err
}

func (p *leaseParameters) args() []any {
	return []any{p.ids, p.modes, p.holders, p.acquiredAt, p.expires, p.ttls, p.rests}
}

// encode returns the parameters, and the variant of the statement that has them.
func (s *Swap) encode() ([]any, variant, error) {
	var c columns
	var v variant
	for i, change := range s.Changes {
		if err := c.add(int32(i+1), change, s.Now); err != nil {
			return nil, v, err
		}
	}
	v.Events, v.Parts = c.event > 0, len(c.dropped.ords)+len(c.saved.ords) > 0
	latest := pgtype.Timestamptz{Time: s.Oldest.Add(MaxLag), Valid: true}
	if s.Commit { // the rows are locked, so nothing has changed since
		latest = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	}
	var closed *time.Time
	if !s.Epoch.ClosedUntil.IsZero() {
		closed = &s.Epoch.ClosedUntil
	}
	args := []any{
		s.Now, latest, s.Epoch.Started, s.Epoch.Number, closed, s.Epoch.Longest.Milliseconds(), MarkSpace, c.endedOrds, c.endedKeys,
		c.at, c.versions, c.names, c.untils, c.entries, c.keys, c.numbers, c.tokens, c.revisions, c.lastEnds, c.changedAts, c.parts,
	}
	args = append(args, c.lease.args()...)
	if v.Parts {
		args = append(args, c.dropped.ords, c.dropped.names, c.dropped.slots, c.dropped.places)
		args = append(args, c.saved.ords, c.saved.names, c.saved.slots, c.saved.places, c.saved.unclaimed, c.saved.tokens,
			c.saved.attachments, c.saved.replica)
		args = append(args, c.saved.args()...)
	}
	return args, v, nil
}

func (c *columns) add(ord int32, change *Change, now time.Time) error {
	before, after := &change.Before.Record, &change.After
	for _, ref := range change.Unused {
		c.endedOrds, c.endedKeys = append(c.endedOrds, ord), append(c.endedKeys, int64(ref))
	}
	c.at = append(c.at, change.Before.At)
	c.versions = append(c.versions, pgtype.Uint32{Uint32: change.Before.Version, Valid: true})
	c.names = append(c.names, after.Name)
	c.untils = append(c.untils, until(before, after, change.At))
	c.addEvents(change, now)
	c.tokens, c.revisions = append(c.tokens, int64(after.Token)), append(c.revisions, after.Revision)
	c.lastEnds, c.changedAts = append(c.lastEnds, int16(after.LastEnd)), append(c.changedAts, after.ChangedAt)
	c.parts = append(c.parts, int32(parts(after)))
	l, r := inline(after), rest{Capacity: after.Capacity}
	if l != nil {
		r = restOf(l)
		r.Capacity, r.Attachment = after.Capacity, int64(l.Attachment)
	}
	if err := c.lease.add(l, r); err != nil {
		return err
	}
	if !change.Changed || parts(before)+parts(after) == 0 {
		return nil
	}
	if err := c.addLeases(ord, before, after); err != nil {
		return err
	}
	return c.addWaiters(ord, before, after)
}

// until returns until when the decision holds: until a lease that it changes would have ended, and no longer than a lease
// that it gives.
func until(before, after *lock.Record, now time.Time) pgtype.Timestamptz {
	first := pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}
	include := func(at time.Time) {
		if first.InfinityModifier == pgtype.Infinity || at.Before(first.Time) {
			first = pgtype.Timestamptz{Time: at, Valid: true}
		}
	}
	for i := range before.Leases {
		l := &before.Leases[i]
		if now.Before(l.EndsAt()) && !contains(after.Leases, l) {
			include(l.EndsAt())
		}
	}
	for i := range after.Leases {
		l := &after.Leases[i]
		if now.Before(l.EndsAt()) && !contains(before.Leases, l) {
			include(l.EndsAt())
		}
	}
	return first
}

func contains(leases []lock.Lease, l *lock.Lease) bool {
	for i := range leases {
		if sameLease(&leases[i], l) {
			return true
		}
	}
	return false
}

// addEvents adds the entry of the lock's events, and the keys by which some of them are found.
func (c *columns) addEvents(change *Change, now time.Time) {
	if len(change.Events) == 0 {
		c.entries, c.keys, c.numbers = append(c.entries, nil), append(c.keys, nil), append(c.numbers, nil)
		return
	}
	entry := string(appendEntry(nil, change.After.Name, change.Before.LastEvent, c.event, change.Events, now))
	c.entries = append(c.entries, &entry)
	var keys, numbers []byte
	add := func(key int64, number int) {
		keys = strconv.AppendInt(append(keys, ','), key, 10)
		numbers = strconv.AppendInt(append(numbers, ','), int64(number), 10)
	}
	for i := range change.Events {
		if ref := change.Events[i].Ref; ref != 0 {
			add(int64(ref), c.event+i)
		}
	}
	if change.Before.Record.Revision/RefInterval != change.After.Revision/RefInterval {
		add(NameKey(change.After.Name), c.event+len(change.Events)-1)
	}
	c.event += len(change.Events)
	if keys == nil {
		c.keys, c.numbers = append(c.keys, nil), append(c.numbers, nil)
		return
	}
	k, n := "{"+string(keys[1:])+"}", "{"+string(numbers[1:])+"}"
	c.keys, c.numbers = append(c.keys, &k), append(c.numbers, &n)
}
