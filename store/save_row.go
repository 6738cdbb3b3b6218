package store

import (
	"bytes"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// leases are the columns of leases to write, null where there is none.
type leases struct {
	ids                       []pgtype.UUID
	modes                     []pgtype.Int2
	holders                   []pgtype.Text
	tokens, ttls, graces, max []pgtype.Int8
	acquiredAts, expiresAts   []pgtype.Timestamptz
	metadatas                 []pgtype.Text
	places, attachments       []int64
	claimBys                  []pgtype.Timestamptz
}

func (r *leases) add(l lock.Lease, held bool) {
	number := func(n int64) pgtype.Int8 { return pgtype.Int8{Int64: n, Valid: held} }
	at := func(t time.Time) pgtype.Timestamptz { return pgtype.Timestamptz{Time: t, Valid: held} }
	r.ids = append(r.ids, pgtype.UUID{Bytes: l.ID, Valid: held})
	r.modes = append(r.modes, pgtype.Int2{Int16: int16(l.Mode), Valid: held})
	r.holders = append(r.holders, pgtype.Text{String: l.Holder, Valid: held})
	r.tokens = append(r.tokens, number(int64(l.Token)))
	r.ttls = append(r.ttls, number(l.TTL.Milliseconds()))
	r.graces = append(r.graces, number(l.Grace.Milliseconds()))
	r.max = append(r.max, number(l.MaxHold.Milliseconds()))
	r.acquiredAts = append(r.acquiredAts, at(l.AcquiredAt))
	r.expiresAts = append(r.expiresAts, at(l.ExpiresAt))
	r.metadatas = append(r.metadatas, pgtype.Text{String: string(l.Metadata), Valid: l.Metadata != nil})
	r.places = append(r.places, l.Place)
	r.attachments = append(r.attachments, int64(l.Attachment))
	r.claimBys = append(r.claimBys, pgtype.Timestamptz{Time: l.ClaimBy, Valid: held && l.Unclaimed()})
}

func (r *leases) args() []any {
	return []any{
		r.ids, r.modes, r.holders, r.tokens, r.ttls, r.graces, r.max,
		r.acquiredAts, r.expiresAts, r.metadatas, r.places, r.attachments, r.claimBys,
	}
}

// anchors are rows of the table locks, slot 0, to write: a slice a column.
type anchors struct {
	names                      []string
	revisions, lastTokens      []int64
	lastEnds                   []int16
	capacities, queued, others []int32
	changedAts                 []time.Time
	leases
}

func (r *anchors) add(s lock.State) {
	inline, held := lock.Lease{}, false
	others := len(s.Leases)
	if others == 1 && s.Leases[0].Slot == 0 {
		inline, held, others = s.Leases[0], true, 0
	}
	r.names = append(r.names, s.Name)
	r.revisions = append(r.revisions, s.Revision)
	r.lastTokens = append(r.lastTokens, int64(s.Token))
	r.lastEnds = append(r.lastEnds, int16(s.End))
	r.capacities = append(r.capacities, int32(s.Capacity))
	r.queued = append(r.queued, int32(len(s.Queue)))
	r.others = append(r.others, int32(others))
	r.changedAts = append(r.changedAts, s.ChangedAt)
	r.leases.add(inline, held)
}

// args are the columns in the order of sql/save_anchors.sql.
func (r *anchors) args() []any {
	return append([]any{
		r.names, r.revisions, r.lastTokens, r.lastEnds, r.capacities, r.queued, r.others, r.changedAts,
	}, r.leases.args()...)
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
			r.leases.add(l, true)
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
		a.Attachment == b.Attachment && a.ClaimBy.Equal(b.ClaimBy) && a.AcquiredAt.Equal(b.AcquiredAt) && bytes.Equal(a.Metadata, b.Metadata)
}

// args are the columns in the order of sql/save_slots.sql.
func (r *slots) args() []any { return append([]any{r.names, r.slots}, r.leases.args()...) }

// places are the keys of rows to drop: a name, and a slot or a place in its queue.
type places struct {
	names  []string
	places []int64
}

func (p *places) add(name string, place int64) {
	p.names = append(p.names, name)
	p.places = append(p.places, place)
}
