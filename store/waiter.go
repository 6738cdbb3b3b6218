package store

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// scanWaiter reads a row of the table waiters, its columns in the order of
// sql/read_queue.sql.
func scanWaiter(r pgx.CollectableRow) (*lock.Waiter, error) {
	w := new(lock.Waiter)
	var id pgtype.UUID
	var ttl, grace, maxHold int64
	var metadata []byte
	err := r.Scan(&w.Lease.Name, &w.Place, &id, &w.Lease.Mode, &w.Capacity, &w.Lease.Holder, &ttl, &grace, &maxHold, &metadata,
		&w.JoinedAt, &w.Attachment, &w.Replica, &w.WaitUntil, &w.AliveUntil, &w.KeptUntil, &w.GrantedUnclaimed)
	w.Lease.ID, w.Lease.Metadata = id.Bytes, metadata
	w.Lease.TTL, w.Lease.Grace, w.Lease.MaxHold = fromMS(ttl), fromMS(grace), fromMS(maxHold)
	for _, at := range []*time.Time{&w.JoinedAt, &w.WaitUntil, &w.AliveUntil, &w.KeptUntil} {
		*at = at.UTC()
	}
	return w, err
}

// waiters are rows of the table waiters to write, and to drop: a slice a column.
type waiters struct {
	names                           []string
	places                          []int64
	ids                             []pgtype.UUID
	modes                           []int16
	capacities                      []int32
	holders                         []string
	ttls, graces, maxHolds          []int64
	metadatas                       []pgtype.Text
	joinedAts                       []time.Time
	attachments, replicas           []int64
	untils, aliveUntils, keptUntils []time.Time
	offered                         []bool
	dropped                         places
}

// add writes what has changed between the queue before and the one now, both in the order of places. A waiter that is
// the same in both costs a comparison, so a long queue with few changes is cheap.
func (r *waiters) add(name string, before, now []*lock.Waiter) {
	for _, w := range now {
		for len(before) > 0 && before[0].Place < w.Place {
			r.dropped.add(name, before[0].Place)
			before = before[1:]
		}
		if len(before) == 0 || before[0].Place > w.Place {
			r.save(name, w)
			continue
		}
		if !sameSeat(before[0], w) {
			r.save(name, w)
		}
		before = before[1:]
	}
	for _, w := range before {
		r.dropped.add(name, w.Place)
	}
}

// sameSeat is whether nothing has changed of what a decision can change.
func sameSeat(a, b *lock.Waiter) bool {
	return a == b || a.Attachment == b.Attachment && a.Replica == b.Replica && a.WaitUntil.Equal(b.WaitUntil) && a.KeptUntil.Equal(b.KeptUntil) &&
		a.GrantedUnclaimed == b.GrantedUnclaimed
}

func (r *waiters) save(name string, w *lock.Waiter) {
	r.names = append(r.names, name)
	r.places = append(r.places, w.Place)
	r.ids = append(r.ids, pgtype.UUID{Bytes: w.Lease.ID, Valid: true})
	r.modes = append(r.modes, int16(w.Lease.Mode))
	r.capacities = append(r.capacities, int32(w.Capacity))
	r.holders = append(r.holders, w.Lease.Holder)
	r.ttls = append(r.ttls, w.Lease.TTL.Milliseconds())
	r.graces = append(r.graces, w.Lease.Grace.Milliseconds())
	r.maxHolds = append(r.maxHolds, w.Lease.MaxHold.Milliseconds())
	r.metadatas = append(r.metadatas, pgtype.Text{String: string(w.Lease.Metadata), Valid: w.Lease.Metadata != nil})
	r.joinedAts = append(r.joinedAts, w.JoinedAt)
	r.attachments = append(r.attachments, int64(w.Attachment))
	r.replicas = append(r.replicas, int64(w.Replica))
	r.untils = append(r.untils, w.WaitUntil)
	r.aliveUntils = append(r.aliveUntils, w.AliveUntil)
	r.keptUntils = append(r.keptUntils, w.KeptUntil)
	r.offered = append(r.offered, w.GrantedUnclaimed)
}

// args are the columns in the order of sql/save_waiters.sql.
func (r *waiters) args() []any {
	return []any{
		r.names, r.places, r.ids, r.modes, r.capacities, r.holders, r.ttls, r.graces, r.maxHolds, r.metadatas, r.joinedAts,
		r.attachments, r.replicas, r.untils, r.aliveUntils, r.keptUntils, r.offered,
	}
}
