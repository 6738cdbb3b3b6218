package store

import (
	"bytes"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// leases are the columns of leases to write.
type leases struct {
	ids                       []pgtype.UUID
	modes                     []int16
	holders                   []string
	tokens, ttls, graces, max []int64
	acquiredAts, expiresAts   []time.Time
	metadatas                 []pgtype.Text
	places, attachments       []int64
	claimBys                  []pgtype.Timestamptz
}

func (r *leases) add(l lock.Lease) {
	r.ids = append(r.ids, pgtype.UUID{Bytes: l.ID, Valid: true})
	r.modes = append(r.modes, int16(l.Mode))
	r.holders = append(r.holders, l.Holder)
	r.tokens = append(r.tokens, int64(l.Token))
	r.ttls = append(r.ttls, l.TTL.Milliseconds())
	r.graces = append(r.graces, l.Grace.Milliseconds())
	r.max = append(r.max, l.MaxHold.Milliseconds())
	r.acquiredAts = append(r.acquiredAts, l.AcquiredAt)
	r.expiresAts = append(r.expiresAts, l.ExpiresAt)
	r.metadatas = append(r.metadatas, pgtype.Text{String: string(l.Metadata), Valid: l.Metadata != nil})
	r.places = append(r.places, l.Place)
	r.attachments = append(r.attachments, int64(l.Attachment))
	r.claimBys = append(r.claimBys, pgtype.Timestamptz{Time: l.ClaimDeadline, Valid: l.Unclaimed()})
}

func (r *leases) args() []any {
	return []any{
		r.ids, r.modes, r.holders, r.tokens, r.ttls, r.graces, r.max,
		r.acquiredAts, r.expiresAts, r.metadatas, r.places, r.attachments, r.claimBys,
	}
}

// bareAnchors are rows of the table locks, slot 0, to write, that have no lease of their
// own: a slice a column.
type bareAnchors struct {
	at                         []pgtype.TID
	revisions, lastTokens      []int64
	lastEnds                   []int16
	capacities, queued, others []int32
	changedAts                 []time.Time
}

func (r *bareAnchors) add(at pgtype.TID, s lock.Record) {
	r.at = append(r.at, at)
	r.revisions = append(r.revisions, s.Revision)
	r.lastTokens = append(r.lastTokens, int64(s.Token))
	r.lastEnds = append(r.lastEnds, int16(s.LastEnd))
	r.capacities = append(r.capacities, int32(s.Capacity))
	r.queued = append(r.queued, int32(len(s.Queue)))
	r.others = append(r.others, int32(len(s.Leases)))
	r.changedAts = append(r.changedAts, s.ChangedAt)
}

// args are the columns in the order of sql/save_bare_anchors.sql.
func (r *bareAnchors) args() []any {
	return []any{r.at, r.revisions, r.lastTokens, r.lastEnds, r.capacities, r.queued, r.others, r.changedAts}
}

// anchors are those with a lease of their own.
type anchors struct {
	bareAnchors
	leases
}

// inlineLease returns the lease on the lock's anchor, if there is one.
func inlineLease(s lock.Record) (lock.Lease, bool) {
	if len(s.Leases) != 1 || s.Leases[0].Slot != 0 {
		return lock.Lease{}, false
	}
	return s.Leases[0], true
}

func (r *anchors) add(at pgtype.TID, s lock.Record, inline lock.Lease) {
	r.bareAnchors.add(at, s)
	r.leases.add(inline)
}

// args are the columns in the order of sql/save_anchors.sql.
func (r *anchors) args() []any {
	return append([]any{r.at, r.revisions, r.lastTokens, r.lastEnds, r.capacities, r.queued, r.changedAts}, r.leases.args()...)
}

// slots are rows of the table locks from slot 1 on to write, and to drop.
type slots struct {
	names []string
	slots []int32
	leases
	dropped places
}

// add writes what has changed between the leases before and those now.
func (r *slots) add(name string, before, now []lock.Lease) {
	was := make(map[int]lock.Lease, len(before))
	for _, l := range before {
		was[l.Slot] = l
	}
	for _, l := range now {
		if l.Slot > 0 && !sameLease(was[l.Slot], l) {
			r.names = append(r.names, name)
			r.slots = append(r.slots, int32(l.Slot))
			r.leases.add(l)
		}
		delete(was, l.Slot)
	}
	for slot := range was {
		if slot > 0 {
			r.dropped.add(name, int64(slot))
		}
	}
}

// sameLease is whether nothing has changed of what a decision can change.
func sameLease(a, b lock.Lease) bool {
	return a.ID == b.ID && a.ExpiresAt.Equal(b.ExpiresAt) && a.TTL == b.TTL && a.Token == b.Token &&
		a.Attachment == b.Attachment && a.ClaimDeadline.Equal(b.ClaimDeadline) && a.AcquiredAt.Equal(b.AcquiredAt) && bytes.Equal(a.Metadata, b.Metadata)
}

// args are the columns in the order of sql/save_slots.sql.
func (r *slots) args() []any { return append([]any{r.names, r.slots}, r.leases.args()...) }

// places are the keys of rows to drop: a name, and a slot or a place in its queue.
type places struct {
	names  []string
	places []int64
}

func (p *places) args() []any { return []any{p.names, p.places} }

func (p *places) add(name string, place int64) {
	p.names = append(p.names, name)
	p.places = append(p.places, place)
}
