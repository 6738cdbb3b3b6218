package row

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// A rest is what the column rest contains of a lease or a waiter. Durations are in milliseconds, instants in
// microseconds since 1970.
type rest struct {
	Capacity   int   `json:"capacity,omitempty"` // of the lock's permits, or of those that a waiter asks for
	Grace      int64 `json:"grace,omitempty"`
	MaxHold    int64 `json:"max_hold,omitempty"`
	ClaimBy    int64 `json:"claim_by,omitempty"`
	Place      int64 `json:"place,omitempty"`      // of a lease: where it waited
	Attachment int64 `json:"attachment,omitempty"` // of the lease in a record
	AliveUntil int64 `json:"alive_until,omitempty"`
	KeptUntil  int64 `json:"kept_until,omitempty"`
	// Metadata is the text of the metadata, as a string: PostgreSQL stores any JSON, and cannot read some of it, like the
	// character 0. A look at such a lease must not fail.
	Metadata string `json:"metadata,omitempty"`
}

// restOf returns the rest of a lease.
func restOf(l *lock.Lease) rest {
	return rest{
		Grace: l.Grace.Milliseconds(), MaxHold: l.MaxHold.Milliseconds(), ClaimBy: micros(l.ClaimDeadline), Place: l.Place,
		Metadata: string(l.Metadata),
	}
}

// text returns the column, nil if there is nothing in it.
func (r rest) text() (*string, error) {
	if r.isZero() {
		return nil, nil
	}
	b, err := json.Marshal(r)
	s := string(b)
	return &s, err
}

func (r rest) isZero() bool {
	return r.Metadata == "" && r.Capacity == 0 && r.Grace|r.MaxHold|r.ClaimBy|r.Place|r.Attachment|r.AliveUntil|r.KeptUntil == 0
}

// fill sets the fields of the lease that are in r.
func (r rest) fill(l *lock.Lease) {
	l.Grace, l.MaxHold, l.ClaimDeadline = fromMillis(r.Grace), fromMillis(r.MaxHold), fromMicros(r.ClaimBy)
	if l.Place = r.Place; r.Metadata != "" {
		l.Metadata = json.RawMessage(r.Metadata)
	}
}

// parseRest returns what the column contains.
func parseRest(text []byte) (r rest, err error) {
	if text == nil {
		return r, nil
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%w: the column rest of a lock: %w", database.ErrMalformed, err)
	}
	return r, nil
}

func fromMillis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

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

// leaseFields are the columns of a lease, as they are read. All are null where there is none.
type leaseFields struct {
	id                  pgtype.UUID
	mode                pgtype.Int2
	holder              pgtype.Text
	acquiredAt, expires pgtype.Timestamptz
	ttl                 pgtype.Int8
	rest                []byte
}

// targets are in the order of leaseColumns.
func (f *leaseFields) targets() []any {
	return []any{&f.id, &f.mode, &f.holder, &f.acquiredAt, &f.expires, &f.ttl, &f.rest}
}

// lease returns the lease of the lock name, as far as it is in these columns, and the rest.
func (f *leaseFields) lease(name string) (lock.Lease, rest, error) {
	r, err := parseRest(f.rest)
	l := lock.Lease{
		ID: f.id.Bytes, Name: name, Mode: lock.Mode(f.mode.Int16), Holder: f.holder.String, TTL: fromMillis(f.ttl.Int64),
		AcquiredAt: f.acquiredAt.Time.UTC(), ExpiresAt: f.expires.Time.UTC(),
	}
	r.fill(&l)
	return l, r, err
}

// ownColumns are the columns of a record that are not of a lease, as they are read.
type ownColumns struct {
	name            string
	lastEvent       int64
	token, revision int64
	lastEnd         int16
	changedAt       time.Time
	parts           int
}

// targets are in the order of sql/look.sql.
func (c *ownColumns) targets() []any {
	return []any{&c.name, &c.lastEvent, &c.token, &c.revision, &c.lastEnd, &c.changedAt, &c.parts}
}

// record returns the record, without its parts.
func (c *ownColumns) record(f *leaseFields) (lock.Record, error) {
	r := lock.Record{Name: c.name, Revision: c.revision, Token: lock.Token(c.token), LastEnd: lock.Kind(c.lastEnd)}
	if r.Revision > 0 {
		r.ChangedAt = c.changedAt.UTC()
	}
	if !f.id.Valid && f.rest == nil {
		return r, nil
	}
	l, rest, err := f.lease(c.name)
	if r.Capacity = rest.Capacity; f.id.Valid {
		l.Token, l.Attachment = r.Token, lock.Attachment(rest.Attachment)
		r.Leases = []lock.Lease{l}
	}
	return r, err
}

// partFields are the columns of a part, as they are read.
type partFields struct {
	slot                       int
	place                      int64
	unclaimed                  bool
	token, attachment, replica int64
	leaseFields
}

// targets are in the order of partColumns.
func (p *partFields) targets() []any {
	return append([]any{&p.slot, &p.place, &p.unclaimed, &p.token, &p.attachment, &p.replica}, p.leaseFields.targets()...)
}

// lease returns the lease in a slot.
func (p *partFields) lease(name string) (lock.Lease, error) {
	l, _, err := p.leaseFields.lease(name)
	l.Slot, l.Token, l.Attachment = p.slot, lock.Token(p.token), lock.Attachment(p.attachment)
	return l, err
}

// waiter returns the waiter at a place.
func (p *partFields) waiter(name string) (*lock.Waiter, error) {
	l, rest, err := p.leaseFields.lease(name)
	w := &lock.Waiter{
		Place: p.place, Capacity: rest.Capacity, JoinedAt: l.AcquiredAt, Attachment: lock.Attachment(p.attachment),
		Replica: lock.Replica(p.replica), WaitUntil: l.ExpiresAt, AliveUntil: fromMicros(rest.AliveUntil),
		KeptUntil: fromMicros(rest.KeptUntil), GrantedUnclaimed: p.unclaimed,
	}
	l.AcquiredAt, l.ExpiresAt = time.Time{}, time.Time{}
	w.Lease = l
	return w, err
}

// inline returns the lease in the record's own row, if there is one.
func inline(r *lock.Record) *lock.Lease {
	if len(r.Leases) == 1 && r.Leases[0].Slot == 0 {
		return &r.Leases[0]
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

// EventsPerBatch is how many ids a row of events has. An event's id is that of its row times EventsPerBatch plus its
// number.
const EventsPerBatch = 4096

// RefInterval is how many revisions of a lock there are, or a few more, between the events in paddock.event_refs.
const RefInterval = 16

// NameKey returns the key of paddock.event_refs for events of the lock: 63 bits of the SHA-256 of its name.
func NameKey(name string) int64 {
	sum := sha256.Sum256([]byte(name))
	return int64(binary.BigEndian.Uint64(sum[:]) >> 1)
}
