package row

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// A rest is what the column rest contains of a lease or a waiter. Durations are in milliseconds, instants in
// microseconds since 1970.
type rest struct {
	Capacity   int   `json:"capacity,omitempty"` // of the lock's permits, or of those that a waiter asks for
	Permits    int   `json:"permits,omitempty"`  // of a waiter: how many it asks for, if more than one
	Grace      int64 `json:"grace,omitempty"`
	MaxHold    int64 `json:"max_hold,omitempty"`
	Left       int64 `json:"left,omitempty"`
	Stays      bool  `json:"stays,omitempty"`
	Suspect    int   `json:"suspect,omitempty"` // 1 if it is; a number, for paddock.duration
	ClaimBy    int64 `json:"claim_by,omitempty"`
	Place      int64 `json:"place,omitempty"`      // of a lease: where it waited
	Attachment int64 `json:"attachment,omitempty"` // of the lease in a record
	AliveUntil int64 `json:"alive_until,omitempty"`
	KeptUntil  int64 `json:"kept_until,omitempty"`
	// Slots is the slots of a lease of several permits, separated by spaces.
	Slots string `json:"slots,omitempty"`
	// The closing of a lock, of the record: until when, by whom, and when that was.
	ClosedUntil int64  `json:"closed_until,omitempty"`
	ClosedBy    string `json:"closed_by,omitempty"`
	ClosedAt    int64  `json:"closed_at,omitempty"`
	Once        bool   `json:"once,omitempty"` // of a waiter
	// The caller of a waiter.
	By    string `json:"by,omitempty"`
	ByID  string `json:"by_id,omitempty"`
	Trace string `json:"trace,omitempty"`
	// Set is the names of the locks that were acquired together, separated by spaces.
	Set string `json:"set,omitempty"`
	// Below is the names of those of the Set that were asked for, separated by spaces, if others are their ancestors.
	Below string `json:"below,omitempty"`
	// Key is the name of the API key for whose limit the lease counts.
	Key string `json:"key,omitempty"`
	// Task is the thread of work. Waiters are found by it: see the index parts_waiting_tasks.
	Task string `json:"task,omitempty"`
	// Metadata is the text of the metadata, as a string: PostgreSQL stores any JSON, and cannot read some of it, like
	// the character 0. A look at such a lease must not fail.
	Metadata string `json:"metadata,omitempty"`
}

// restOf returns the rest of a lease.
func restOf(l *lock.Lease) rest {
	suspect := 0
	if l.Suspect {
		suspect = 1
	}
	return rest{
		Stays: l.Stays, Suspect: suspect,
		Grace: l.Grace.Milliseconds(), MaxHold: l.MaxHold.Milliseconds(),
		Left: roundedUp(l.Left), ClaimBy: micros(l.ClaimDeadline), Place: l.Place,
		Metadata: string(l.Metadata), Set: strings.Join(l.Set, " "), Below: strings.Join(l.Below, " "),
		Task: string(l.Task), Key: l.Key, Slots: string(l.Slots),
	}
}

// text returns the column, nil if there is nothing in it.
func (r rest) text() []byte {
	if r == (rest{}) {
		return nil
	}
	return mustJSON(r)
}

// mustJSON returns the JSON of a value for which json.Marshal cannot fail.
func mustJSON(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("row: %T as JSON: %v", value, err))
	}
	return text
}

// fill sets the fields of the lease that are in r.
func (r rest) fill(l *lock.Lease) {
	l.Grace, l.MaxHold, l.ClaimDeadline = fromMillis(r.Grace), fromMillis(r.MaxHold), fromMicros(r.ClaimBy)
	l.Left = fromMillis(r.Left)
	l.Slots, l.Stays, l.Suspect = lock.Slots(r.Slots), r.Stays, r.Suspect != 0
	if l.Place = r.Place; r.Metadata != "" {
		l.Metadata = json.RawMessage(r.Metadata)
	}
	l.Key = r.Key
	if l.Task = lock.TaskID(r.Task); r.Set != "" {
		l.Set = strings.Split(r.Set, " ")
	}
	if r.Below != "" {
		l.Below = strings.Split(r.Below, " ")
	}
}

func fromMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// roundedUp returns the milliseconds that last at least as long.
func roundedUp(d time.Duration) int64 { return (d + time.Millisecond - 1).Milliseconds() }

// micros returns microseconds since 1970, zero for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// A column is a field of a row: its name and type in SQL, and a pointer to its value. The value is of a type of
// pgtype, which pgx encodes as it is; it would copy what the pointer to another one leads to.
type column struct {
	name, kind string
	value      any
}

// values returns the pointers to the values, as targets of a scan.
func values(columns []column) []any {
	targets := make([]any, len(columns))
	for i, c := range columns {
		targets[i] = c.value
	}
	return targets
}

// A storedLease is the columns of a lease, in a record or a part. All are null where there is none.
type storedLease struct {
	id                    pgtype.UUID
	mode                  pgtype.Int2
	holder                pgtype.Text
	acquiredAt, expiresAt pgtype.Timestamptz
	ttl                   pgtype.Int8
	rest                  []byte
	session               pgtype.Int8 // null for none
}

// columns appends the columns to others.
func (s *storedLease) columns(to []column) []column {
	return append(to, []column{
		{"lease_id", "uuid", &s.id}, {"mode", "smallint", &s.mode}, {"holder", "text", &s.holder},
		{"acquired_at", "timestamptz", &s.acquiredAt}, {"expires_at", "timestamptz", &s.expiresAt},
		{"ttl_ms", "bigint", &s.ttl}, {"rest", "json", &s.rest}, {"session", "bigint", &s.session},
	}...)
}

// storeLease returns the columns of a lease with the rest.
func storeLease(l *lock.Lease, r rest) storedLease {
	s := storedLease{
		id: pgtype.UUID{Bytes: l.ID, Valid: true}, mode: smallint(int(l.Mode)), holder: text(l.Holder),
		acquiredAt: timestamp(l.AcquiredAt), expiresAt: timestamp(l.ExpiresAt), ttl: bigint(l.TTL.Milliseconds()), rest: r.text(),
	}
	if l.Session != 0 {
		s.expiresAt, s.session = timestamp(ofSession), bigint(int64(l.Session))
	}
	return s
}

// lease returns the lease of the lock name, an error if it cannot be read, as far as it is in these columns, and the
// rest. That of a session has no ExpiresAt yet, see Sessions.
func (s *storedLease) lease(name string) (l lock.Lease, r rest, err error) {
	if s.rest != nil {
		if err = json.Unmarshal(s.rest, &r); err != nil {
			err = fmt.Errorf("rest: %w", err)
		}
	}
	if err == nil {
		err = s.check(r)
	}
	l = lock.Lease{
		ID: s.id.Bytes, Name: name, Mode: lock.Mode(s.mode.Int16), Holder: s.holder.String, TTL: fromMillis(s.ttl.Int64),
		AcquiredAt: s.acquiredAt.Time.UTC(), ExpiresAt: s.expiresAt.Time.UTC(),
	}
	r.fill(&l)
	if s.session.Valid && l.ExpiresAt.Equal(ofSession) {
		l.Session, l.ExpiresAt = lock.SessionRef(s.session.Int64), time.Time{}
	}
	return l, r, err
}

// A storedRecord is a row of paddock.records, without its last_event.
type storedRecord struct {
	name            pgtype.Text
	token, revision pgtype.Int8
	lastEnd         pgtype.Int2
	changedAt       pgtype.Timestamptz
	parts           pgtype.Int4
	storedLease     // see inline
}

// columns appends the columns to others. The first is the key.
func (s *storedRecord) columns(to []column) []column {
	return s.storedLease.columns(append(to, []column{
		{"name", "text", &s.name}, {"token", "bigint", &s.token}, {"revision", "bigint", &s.revision},
		{"last_end", "smallint", &s.lastEnd}, {"changed_at", "timestamptz", &s.changedAt}, {"parts", "integer", &s.parts},
	}...))
}

// storeRecord returns the row of a record. Its other leases and its waiters are parts.
func storeRecord(r *lock.Record) storedRecord {
	s := storedRecord{
		name: text(r.Name), token: bigint(int64(r.Token)), revision: bigint(r.Revision), lastEnd: smallint(int(r.LastEnd)),
		changedAt: timestamp(r.ChangedAt), parts: integer(parts(r)),
	}
	if l := inline(r); l != nil {
		rest := restOf(l)
		rest.Capacity, rest.Attachment = r.Capacity, int64(l.Attachment)
		s.storedLease = storeLease(l, rest.withClosure(r.Closed))
	} else {
		s.rest = rest{Capacity: r.Capacity}.withClosure(r.Closed).text()
	}
	return s
}

// withClosure returns the rest of a record that was closed; nil: it was not.
func (r rest) withClosure(c *lock.Closure) rest {
	if c != nil {
		r.ClosedUntil, r.ClosedBy, r.ClosedAt = micros(c.Until), c.Holder, micros(c.At)
	}
	return r
}

// closure returns how the record was closed, nil if it was not.
func (r rest) closure() *lock.Closure {
	if r.ClosedUntil == 0 {
		return nil
	}
	return &lock.Closure{Until: fromMicros(r.ClosedUntil), Holder: r.ClosedBy, At: fromMicros(r.ClosedAt)}
}

// record returns the record, without its parts.
func (s *storedRecord) record() (lock.Record, error) {
	r := lock.Record{
		Name: s.name.String, Revision: s.revision.Int64, Token: lock.Token(s.token.Int64), LastEnd: lock.Kind(s.lastEnd.Int16),
	}
	if r.Revision > 0 {
		r.ChangedAt = s.changedAt.Time.UTC()
	}
	l, rest, err := s.lease(r.Name)
	r.Closed = rest.closure()
	if r.Capacity = rest.Capacity; s.id.Valid {
		l.Token, l.Attachment = r.Token, lock.Attachment(rest.Attachment)
		if l.Mode != lock.Exclusive {
			l.Slot = 1
		}
		r.Leases = []lock.Lease{l}
	}
	if err == nil {
		err = s.check()
	}
	if err == nil {
		err = checkSlots(&l)
	}
	if err != nil {
		err = malformedRecord(r.Name, err)
	}
	return r, err
}

// inline returns the lease that is stored in the record's own row, or nil: the lease in slot 0 or 1, while it has the
// newest token of the lock. So the only lease of a lock is seldom a part. Tokens only grow, so a lease becomes a part
// at most once, when another lease is granted, and a part never becomes inline.
func inline(r *lock.Record) *lock.Lease {
	for i := range r.Leases {
		if l := &r.Leases[i]; l.Slot <= 1 {
			if l.Token == r.Token {
				return l
			}
			return nil
		}
	}
	return nil
}

// parts returns how many rows of paddock.parts the record has.
func parts(r *lock.Record) int {
	n := len(r.Leases) + len(r.Queue)
	if inline(r) != nil {
		n--
	}
	return n
}

// A part is a row of paddock.parts. All is null where a record without parts is joined with them.
type part struct {
	name                       pgtype.Text
	slot                       pgtype.Int4 // zero for a waiter
	place                      pgtype.Int8
	unclaimed                  pgtype.Bool
	token, attachment, replica pgtype.Int8
	storedLease

	aliveUntil pgtype.Timestamptz // as the row of the waiter's replica says, if there is one; not a column of the part
}

// columns appends the columns to others. The first three are the key.
func (p *part) columns(to []column) []column {
	return p.storedLease.columns(append(to, []column{
		{"name", "text", &p.name}, {"slot", "integer", &p.slot}, {"place", "bigint", &p.place}, {"unclaimed", "boolean", &p.unclaimed},
		{"token", "bigint", &p.token}, {"attachment", "bigint", &p.attachment}, {"replica", "bigint", &p.replica},
	}...))
}

// partKeyLength is the number of columns of the key of a part.
const partKeyLength = 3

// partOf returns the part of the lock with the key, without anything else.
func partOf(name string, slot int, place int64) *part {
	return &part{name: text(name), slot: integer(slot), place: bigint(place)}
}

func leasePart(name string, l *lock.Lease) *part {
	p := partOf(name, l.Slot, 0)
	p.unclaimed.Valid, p.token, p.attachment, p.replica = true, bigint(int64(l.Token)), bigint(int64(l.Attachment)), bigint(0)
	p.storedLease = storeLease(l, restOf(l))
	return p
}

func waiterPart(name string, w *lock.Waiter) *part {
	p := partOf(name, 0, w.Place)
	p.unclaimed = pgtype.Bool{Bool: w.GrantedUnclaimed, Valid: true}
	p.token, p.attachment, p.replica = bigint(0), bigint(int64(w.Attachment)), bigint(int64(w.Replica))
	r := restOf(&w.Lease)
	r.Capacity, r.Once, r.AliveUntil, r.KeptUntil = w.Capacity, w.Once, micros(w.AliveUntil), micros(w.KeptUntil)
	r.By, r.ByID, r.Trace = w.Caller.Name, w.Caller.KeyID, w.Caller.Trace
	if w.Permits > 1 {
		r.Permits = w.Permits
	}
	p.storedLease = storeLease(&w.Lease, r)
	p.acquiredAt, p.expiresAt = timestamp(w.JoinedAt), timestamp(w.WaitUntil)
	return p
}

// addTo adds the lease or the waiter to its record. If assumeAlive is positive, the replica of the waiter is alive for
// so long from now on, at least. After an outage that may be more than its row says, or there is no row: a crash of
// PostgreSQL loses the newest heartbeats.
func (p *part) addTo(r *lock.Record, now time.Time, assumeAlive time.Duration) error {
	l, rest, err := p.lease(r.Name)
	if err == nil {
		err = inRange("token", p.token.Int64, int64(r.Token))
	}
	if err == nil {
		err = inRange("place", p.place.Int64, maxWhole)
	}
	if err != nil {
		return malformedPart(p, err)
	}
	if p.slot.Int32 > 0 {
		l.Slot, l.Token, l.Attachment = int(p.slot.Int32), lock.Token(p.token.Int64), lock.Attachment(p.attachment.Int64)
		if err := checkSlots(&l); err != nil {
			return malformedPart(p, err)
		}
		r.Leases = append(r.Leases, l)
		return nil
	}
	w := &lock.Waiter{
		Place: p.place.Int64, Capacity: rest.Capacity, Permits: rest.Permits, Once: rest.Once, JoinedAt: l.AcquiredAt, Attachment: lock.Attachment(p.attachment.Int64),
		Replica: lock.Replica(p.replica.Int64), WaitUntil: l.ExpiresAt, AliveUntil: fromMicros(rest.AliveUntil),
		KeptUntil: fromMicros(rest.KeptUntil), GrantedUnclaimed: p.unclaimed.Bool,
		Caller: lock.Caller{Name: rest.By, KeyID: rest.ByID, Trace: rest.Trace},
	}
	l.AcquiredAt, l.ExpiresAt, l.Session = time.Time{}, time.Time{}, lock.SessionRef(p.session.Int64)
	w.Lease = l
	if w.Replica != 0 {
		alive := []time.Time{w.AliveUntil, p.aliveUntil.Time.UTC()}
		if assumeAlive > 0 {
			alive = append(alive, now.Add(assumeAlive))
		}
		w.AliveUntil = slices.MaxFunc(alive, time.Time.Compare)
	}
	r.Queue = append(r.Queue, w)
	return nil
}

func text(s string) pgtype.Text                { return pgtype.Text{String: s, Valid: true} }
func smallint(n int) pgtype.Int2               { return pgtype.Int2{Int16: int16(n), Valid: true} }
func integer(n int) pgtype.Int4                { return pgtype.Int4{Int32: int32(n), Valid: true} }
func bigint(n int64) pgtype.Int8               { return pgtype.Int8{Int64: n, Valid: true} }
func timestamp(t time.Time) pgtype.Timestamptz { return pgtype.Timestamptz{Time: t, Valid: true} }
