package store

import (
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// swapColumns is how many attributes paddock.swap has.
const swapColumns = 29

// A swapArray is written as PostgreSQL reads an array of composites in its binary format:
// a length and a type ahead of every value.
type swapArray struct {
	b    []byte
	rows int
}

var order = binary.BigEndian

// newSwapArray begins an array of elements of the type.
func newSwapArray(element uint32, room int) *swapArray {
	a := &swapArray{b: make([]byte, 0, 64+400*room)}
	a.b = order.AppendUint32(a.b, 1) // dimension
	a.b = order.AppendUint32(a.b, 0) // no element is null
	a.b = order.AppendUint32(a.b, element)
	a.b = order.AppendUint32(a.b, 0) // how many, see bytes
	a.b = order.AppendUint32(a.b, 1) // the first index
	return a
}

// bytes returns the array as it is sent.
func (a *swapArray) bytes() []byte {
	order.PutUint32(a.b[12:], uint32(a.rows))
	return a.b
}

// add appends a lock as it is to be, in the order of migrations/0004_swap.up.sql.
func (a *swapArray) add(w *swapping) {
	start := a.begin(w.after.Name)
	a.place(w.before.at)
	a.version(w.before.version)
	a.until(w)
	a.ref(w.unused)
	a.boolean(w.draws)
	a.long(w.after.Revision)
	a.long(int64(w.after.Token))
	a.short(int16(w.after.LastEnd))
	a.integer(int32(len(w.after.Queue)))
	a.instant(w.after.ChangedAt)
	a.lease(w.after.Leases)
	a.event(w.told)
	a.end(start)
}

// tell appends an event alone, of a lock that has more than one to tell. Draws says that
// its token is the one that the lock draws.
func (a *swapArray) tell(e *lock.Event, draws bool) {
	start := a.begin(e.Name)
	a.null(pgtype.TIDOID, pgtype.XIDOID, pgtype.TimestamptzOID, pgtype.Int8OID)
	a.boolean(draws)
	a.long(e.Revision)
	a.long(int64(e.Token))
	a.null(pgtype.Int2OID, pgtype.Int4OID)
	a.instant(e.At)
	a.null(noLease...)
	a.null(pgtype.Int8OID, pgtype.Int8OID)
	a.event(e)
	a.end(start)
}

// begin begins an element, and returns where.
func (a *swapArray) begin(name string) int {
	start := len(a.b)
	a.b = order.AppendUint32(a.b, 0) // its length, see end
	a.b = order.AppendUint32(a.b, swapColumns)
	a.integer(int32(a.rows))
	a.text(name)
	return start
}

func (a *swapArray) end(start int) {
	order.PutUint32(a.b[start:], uint32(len(a.b)-start-4))
	a.rows++
}

func (a *swapArray) place(at pgtype.TID) {
	a.head(pgtype.TIDOID, 6)
	a.b = order.AppendUint16(order.AppendUint32(a.b, at.BlockNumber), at.OffsetNumber)
}

func (a *swapArray) version(xid uint32) {
	a.head(pgtype.XIDOID, 4)
	a.b = order.AppendUint32(a.b, xid)
}

// until writes how long the decision holds: until the lease that there was is over, and no longer
// than the one that it gives.
func (a *swapArray) until(w *swapping) {
	var first time.Time
	for _, l := range w.before.state.Leases {
		first = l.EndsAt()
	}
	for _, l := range w.after.Leases {
		if first.IsZero() || l.ExpiresAt.Before(first) {
			first = l.ExpiresAt
		}
	}
	if !first.IsZero() {
		a.instant(first)
		return
	}
	a.head(pgtype.TimestamptzOID, 8)
	a.b = order.AppendUint64(a.b, 1<<63-1) // infinity
}

var (
	noLease = []uint32{
		pgtype.UUIDOID, pgtype.Int2OID, pgtype.TextOID, pgtype.Int8OID, pgtype.Int8OID, pgtype.Int8OID,
		pgtype.TimestamptzOID, pgtype.TimestamptzOID, pgtype.TextOID,
	}
	noEvent = []uint32{pgtype.Int2OID, pgtype.Int2OID, pgtype.TextOID, pgtype.Int8OID, pgtype.TextOID, pgtype.Int8OID}
)

func (a *swapArray) lease(leases []lock.Lease) {
	if len(leases) == 0 {
		a.null(noLease...)
		a.long(0)
		a.long(0)
		return
	}
	l := &leases[0]
	a.head(pgtype.UUIDOID, len(l.ID))
	a.b = append(a.b, l.ID[:]...)
	a.short(int16(l.Mode))
	a.text(l.Holder)
	a.long(l.TTL.Milliseconds())
	a.long(l.Grace.Milliseconds())
	a.long(l.MaxHold.Milliseconds())
	a.instant(l.AcquiredAt)
	a.instant(l.ExpiresAt)
	if l.Metadata == nil {
		a.null(pgtype.TextOID)
	} else {
		a.text(string(l.Metadata))
	}
	a.long(l.Place)
	a.long(int64(l.Attachment))
}

func (a *swapArray) event(e *lock.Event) {
	if e == nil {
		a.null(noEvent...)
		return
	}
	a.short(int16(e.Kind))
	a.short(int16(e.Mode))
	a.text(e.Holder)
	a.long(e.Place)
	a.text(e.Reason)
	a.ref(e.Ref)
}

// head is ahead of each value.
func (a *swapArray) head(oid uint32, length int) {
	a.b = order.AppendUint32(a.b, oid)
	a.b = order.AppendUint32(a.b, uint32(length))
}

func (a *swapArray) null(oids ...uint32) {
	for _, oid := range oids {
		a.head(oid, -1)
	}
}

func (a *swapArray) long(v int64) {
	a.head(pgtype.Int8OID, 8)
	a.b = order.AppendUint64(a.b, uint64(v))
}

func (a *swapArray) integer(v int32) {
	a.head(pgtype.Int4OID, 4)
	a.b = order.AppendUint32(a.b, uint32(v))
}

func (a *swapArray) short(v int16) {
	a.head(pgtype.Int2OID, 2)
	a.b = order.AppendUint16(a.b, uint16(v))
}

func (a *swapArray) boolean(v bool) {
	a.head(pgtype.BoolOID, 1)
	if v {
		a.b = append(a.b, 1)
	} else {
		a.b = append(a.b, 0)
	}
}

func (a *swapArray) text(v string) {
	a.head(pgtype.TextOID, len(v))
	a.b = append(a.b, v...)
}

func (a *swapArray) instant(t time.Time) {
	a.head(pgtype.TimestamptzOID, 8)
	a.b = appendInstant(a.b, t)
}

// ref writes no hash as null.
func (a *swapArray) ref(r lock.LeaseRef) {
	if r == 0 {
		a.null(pgtype.Int8OID)
		return
	}
	a.long(int64(r))
}

// epoch2000 is the instant from which PostgreSQL counts microseconds.
var epoch2000 = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func appendInstant(b []byte, t time.Time) []byte {
	return order.AppendUint64(b, uint64(t.Unix()-epoch2000.Unix())*1e6+uint64(t.Nanosecond()/1000))
}

func placeIn(b []byte) pgtype.TID {
	return pgtype.TID{BlockNumber: order.Uint32(b), OffsetNumber: order.Uint16(b[4:]), Valid: true}
}

func instantOf(b []byte) time.Time {
	return time.UnixMicro(epoch2000.UnixMicro() + int64(order.Uint64(b))).UTC()
}
