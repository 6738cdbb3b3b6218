package eventlog

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// scanTime is after how long a page is returned although it is not full and there are more batches.
const scanTime = 3 * time.Second

// A Log reads the events of the database. Its methods are safe for concurrent use.
type Log struct {
	db       *database.DB
	draining <-chan struct{}
	tail     *tail
	shown    atomic.Int64 // the greatest bound, an event id
}

// New returns a Log. When draining is closed, calls that wait are refused. Run must run for calls to wait.
func New(db *database.DB, draining <-chan struct{}) *Log {
	return &Log{db: db, draining: draining, tail: newTail()}
}

// A segment is the events that a query selects between two ids.
type segment struct {
	events []lock.Event // in the order of their ids, at most the query's limit
	upTo   int64        // these are all selected events up to this id
	end    bool         // there were no batches after upTo up to the bound
	gap    bool         // events may be missing before these
}

// cut limits the segment to n events.
func (s *segment) cut(n int) {
	if len(s.events) >= n {
		s.events = s.events[:n:n]
		s.upTo, s.end = s.events[n-1].ID, false
	}
}

// Page returns a page of events, see lock.Service. If q.Wait is positive it waits for up to that long while the page
// is empty. Errors are those of package lock.
//
// A page is read in steps of bounded work. It has fewer events than its limit only if there are no more, if there is
// a gap, or if it took scanTime to find them. In that case the page may even be empty, but its Next is ahead of the
// cursor.
func (l *Log) Page(ctx context.Context, q lock.EventQuery) (page lock.Page[lock.Event], err error) {
	if q, err = q.Resolve(); err != nil {
		return page, err
	}
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return page, err
	}
	read := l.stored
	if q.Wait > 0 {
		read = l.await
	}
	s, err := read(ctx, q, after)
	if err != nil {
		return page, err
	}
	return lock.Page[lock.Event]{Items: s.events, Next: strconv.FormatInt(s.upTo, 10), Gap: s.gap}, nil
}

// stored reads the segment after the id from the database, step by step. A negative id is for the bound, without
// events.
func (l *Log) stored(ctx context.Context, q lock.EventQuery, after int64) (segment, error) {
	s := segment{upTo: after}
	for began, size := time.Now(), firstStep(q.Limit); ; size = nextStep {
		var next segment
		err := l.db.Read(ctx, func(ctx context.Context) (err error) {
			rest := q
			rest.Limit -= len(s.events)
			next, _, err = l.read(ctx, rest, s.upTo, size)
			return err
		})
		if err != nil {
			return s, err
		}
		s = segment{append(s.events, next.events...), next.upTo, next.end, s.gap || next.gap}
		if s.end || s.gap || len(s.events) == q.Limit || time.Since(began) >= scanTime {
			return s, nil
		}
	}
}

// parseCursor returns the id after which a page begins, negative for the bound.
func parseCursor(cursor string) (int64, error) {
	switch cursor {
	case "":
		return 0, nil
	case lock.CursorNow:
		return -1, nil
	}
	after, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || after < 0 || cursor != strconv.FormatInt(after, 10) {
		return 0, lock.Invalid("cursor",
			"is invalid; pass next_cursor unchanged, the id of an event, or now, or omit it to start over")
	}
	return after, nil
}
