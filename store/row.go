package store

import (
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// An anchor is a row of the table locks, slot 0, as read.
type anchor struct {
	name      string
	revision  int64
	lastToken int64
	lastEnd   int16
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
}

// targets are where the columns go, in the order of the statements.
func (a *anchor) targets() []any {
	return []any{
		&a.name, &a.revision, &a.lastToken, &a.lastEnd, &a.changedAt,
		&a.leaseID, &a.mode, &a.holder, &a.token, &a.ttl, &a.grace, &a.maxHold,
		&a.acquiredAt, &a.expiresAt, &a.metadata,
	}
}

func (a *anchor) state() lock.State {
	s := lock.State{
		Name: a.name, Revision: a.revision, Token: lock.Token(a.lastToken), End: lock.Kind(a.lastEnd),
	}
	if s.Revision > 0 {
		s.ChangedAt = a.changedAt.UTC()
	}
	if a.leaseID.Valid {
		s.Leases = []lock.Lease{{
			ID: a.leaseID.Bytes, Name: a.name, Mode: lock.Mode(a.mode.Int16), Holder: a.holder.String,
			Token: lock.Token(a.token.Int64), TTL: fromMS(a.ttl.Int64), Grace: fromMS(a.grace.Int64),
			MaxHold: fromMS(a.maxHold.Int64), AcquiredAt: a.acquiredAt.Time.UTC(),
			ExpiresAt: a.expiresAt.Time.UTC(), Metadata: json.RawMessage(a.metadata),
		}}
	}
	return s
}

func fromMS(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }

// anchors are rows of the table locks, slot 0, to write: a slice a column.
type anchors struct {
	names                     []string
	revisions, lastTokens     []int64
	lastEnds                  []int16
	changedAts                []time.Time
	leaseIDs                  []pgtype.UUID
	modes                     []pgtype.Int2
	holders                   []pgtype.Text
	tokens, ttls, graces, max []pgtype.Int8
	acquiredAts, expiresAts   []pgtype.Timestamptz
	metadatas                 []pgtype.Text
}

func (r *anchors) add(s lock.State) {
	var l lock.Lease
	held := len(s.Leases) > 0
	if held {
		l = s.Leases[0]
	}
	number := func(n int64) pgtype.Int8 { return pgtype.Int8{Int64: n, Valid: held} }
	at := func(t time.Time) pgtype.Timestamptz { return pgtype.Timestamptz{Time: t, Valid: held} }
	r.names = append(r.names, s.Name)
	r.revisions = append(r.revisions, s.Revision)
	r.lastTokens = append(r.lastTokens, int64(s.Token))
	r.lastEnds = append(r.lastEnds, int16(s.End))
	r.changedAts = append(r.changedAts, s.ChangedAt)
	r.leaseIDs = append(r.leaseIDs, pgtype.UUID{Bytes: l.ID, Valid: held})
	r.modes = append(r.modes, pgtype.Int2{Int16: int16(l.Mode), Valid: held})
	r.holders = append(r.holders, pgtype.Text{String: l.Holder, Valid: held})
	r.tokens = append(r.tokens, number(int64(l.Token)))
	r.ttls = append(r.ttls, number(l.TTL.Milliseconds()))
	r.graces = append(r.graces, number(l.Grace.Milliseconds()))
	r.max = append(r.max, number(l.MaxHold.Milliseconds()))
	r.acquiredAts = append(r.acquiredAts, at(l.AcquiredAt))
	r.expiresAts = append(r.expiresAts, at(l.ExpiresAt))
	r.metadatas = append(r.metadatas, pgtype.Text{String: string(l.Metadata), Valid: l.Metadata != nil})
}

// args are the columns in the order of sql/save_anchors.sql.
func (r *anchors) args() []any {
	return []any{
		r.names, r.revisions, r.lastTokens, r.lastEnds, r.changedAts,
		r.leaseIDs, r.modes, r.holders, r.tokens, r.ttls, r.graces, r.max,
		r.acquiredAts, r.expiresAts, r.metadatas,
	}
}
