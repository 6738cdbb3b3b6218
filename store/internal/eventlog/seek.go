package eventlog

import (
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// clockSlack is by how much the instants of batches may be out of the order of their ids: a batch gets its id later
// than its instant, within the time limit of a transaction, and the database's clock may be set back a little.
const clockSlack = time.Minute

var sqlSeek = database.Statement(files, "seek")

// A span is the ids between which the events of a query are.
type span struct {
	after, before int64 // both exclusive
	closed        bool  // no further event will be between them
	pruned        bool  // events of the query's range may have been deleted
}

// span returns the span of the query from its cursor on.
func (l *Log) span(ctx context.Context, q paddock.EventQuery, cursor int64) (span, error) {
	ids := span{after: -1, before: math.MaxInt64}
	if !q.Since.IsZero() || !q.Until.IsZero() || q.Descending {
		if err := l.seek(ctx, q, &ids); err != nil {
			return span{}, err
		}
	}
	switch {
	case q.Descending:
		ids.before = min(ids.before, cursor)
	case cursor < 0:
		ids.after = cursor
	default:
		ids.after = max(ids.after, cursor)
	}
	return ids, nil
}

// seek narrows the span to the batches that may have events of the query's range.
func (l *Log) seek(ctx context.Context, q paddock.EventQuery, ids *span) error {
	since, until := rangeOf(q)
	return l.db.Read(ctx, func(ctx context.Context) error {
		var first, next, pruned int64
		var now time.Time
		err := l.db.Rest.QueryRow(ctx, sqlSeek.In(l.db.Schema), since, until, readsHistory(q)).Scan(&first, &next, &now, &pruned)
		if err != nil {
			return err
		}
		ids.after = firstOf(first) - 1
		if next > 0 {
			ids.before = firstOf(next)
		}
		ids.closed = !q.Until.IsZero() && !now.Before(q.Until)
		ids.pruned = pruned > 0 && first <= epoch.BatchOf(pruned)
		return nil
	})
}

// rangeOf returns the instants between which a batch may be that has an event of the query's range.
func rangeOf(q paddock.EventQuery) (since, until pgtype.Timestamptz) {
	since = pgtype.Timestamptz{InfinityModifier: pgtype.NegativeInfinity, Valid: true}
	if !q.Since.IsZero() {
		since = pgtype.Timestamptz{Time: q.Since.Add(-clockSlack), Valid: true}
	}
	until = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
	if !q.Until.IsZero() {
		until = pgtype.Timestamptz{Time: q.Until.Add(clockSlack), Valid: true}
	}
	return since, until
}

// passed reports whether no event of the span follows the segment, which begins with it.
func (ids span) passed(q paddock.EventQuery, s segment) bool {
	if q.Descending {
		return s.end || s.upTo <= ids.after+1
	}
	return s.end && ids.closed || s.upTo >= ids.before-1
}
