package store

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// A row is one of the table locks, as read: an anchor, or what sits beside it.
type row struct {
	name string
	slot int

	// the anchor's own
	revision  int64
	lastToken int64
	lastEnd   int16
	capacity  int
	queued    int
	sitting   int
	changedAt time.Time

	leaseID    pgtype.UUID
	mode       pgtype.Int2
	holder     pgtype.Text
	token      pgtype.Int8
	ttl        pgtype.Int8
	grace      pgtype.Int8
	maxHold    pgtype.Int8
	acquiredAt pgtype.Timestamptz
	expiresAt  pgtype.Timestamptz
	metadata   []byte
	place      int64
	attachment int64
	claimBy    pgtype.Timestamptz
}

// targets are where the columns go, in the order of the statements.
func (r *row) targets() []any {
	return []any{
		&r.name, &r.slot, &r.revision, &r.lastToken, &r.lastEnd, &r.capacity, &r.queued, &r.sitting, &r.changedAt,
		&r.leaseID, &r.mode, &r.holder, &r.token, &r.ttl, &r.grace, &r.maxHold,
		&r.acquiredAt, &r.expiresAt, &r.metadata, &r.place, &r.attachment, &r.claimBy,
	}
}

// state returns the lock that the row is the anchor of, with its inline lease.
func (r *row) state() lock.Record {
	s := lock.Record{
		Name: r.name, Revision: r.revision, Token: lock.Token(r.lastToken), LastEnd: lock.Kind(r.lastEnd), Capacity: r.capacity,
	}
	if s.Revision > 0 {
		s.ChangedAt = r.changedAt.UTC()
	}
	if r.leaseID.Valid {
		s.Leases = []lock.Lease{r.lease()}
	}
	return s
}

// lease returns the lease that sits in the row.
func (r *row) lease() lock.Lease {
	l := lock.Lease{
		ID: r.leaseID.Bytes, Name: r.name, Slot: r.slot, Mode: lock.Mode(r.mode.Int16), Holder: r.holder.String,
		Token: lock.Token(r.token.Int64), TTL: fromMS(r.ttl.Int64), Grace: fromMS(r.grace.Int64),
		MaxHold: fromMS(r.maxHold.Int64), AcquiredAt: r.acquiredAt.Time.UTC(),
		ExpiresAt: r.expiresAt.Time.UTC(), Metadata: json.RawMessage(r.metadata),
		Place: r.place, Attachment: lock.Attachment(r.attachment),
	}
	if r.claimBy.Valid {
		l.ClaimDeadline = r.claimBy.Time.UTC()
	}
	return l
}

func fromMS(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// lockRows reads whole locks from rows that begin with an instant and have each
// anchor before what sits beside it.
func lockRows(rows pgx.Rows) ([]lock.Lock, []lock.Record, error) {
	var now time.Time
	var r row
	var states []lock.Record
	var queued []int
	_, err := pgx.ForEachRow(rows, append([]any{&now}, r.targets()...), func() error {
		if r.slot == 0 {
			states, queued = append(states, r.state()), append(queued, r.queued)
		} else if last := len(states) - 1; last >= 0 {
			states[last].Leases = append(states[last].Leases, r.lease())
		}
		return nil
	})
	locks := make([]lock.Lock, len(states))
	for i, s := range states {
		locks[i] = s.Lock(now.UTC())
		locks[i].Waiters += queued[i] // which s has not read
	}
	return locks, states, err
}
