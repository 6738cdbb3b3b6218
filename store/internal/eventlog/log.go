package eventlog

import (
	"cmp"
	"context"
	"embed"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
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

//go:embed sql/*.sql
var files embed.FS

var (
	sqlNewest  = database.Statement(files, "newest")
	sqlMarks   = database.Statement(files, "marks")
	sqlBatches = database.Statement(files, "batches")
	sqlHistory = database.Statement(files, "history")
	sqlHorizon = database.Statement(files, "horizon")
)

// A step limits what is read in one round trip. At least one batch is read.
type step struct {
	batches int
	bytes   int // of entries, as they are stored
	events  int // of the history of one lock
}

// nextStep is the limit of each step but the first one.
var nextStep = step{batches: 1000, bytes: 1 << 20, events: 250}

// firstStep returns the limit of the first step for a page. That is enough for a page of all events, unless they are
// long.
func firstStep(limit int) step {
	return step{batches: limit + 1, bytes: 256 * limit, events: nextStep.events}
}

// A bound is how far events can be read.
type bound struct {
	upTo   int64 // no event up to this id is missing that will ever exist
	newest int64 // no committed event has a greater id
	epoch  int64 // the newest epoch
}

// lastOf returns the greatest id that an event of the batch can have.
func lastOf(batch int64) int64 { return batch*row.EventsPerBatch + row.EventsPerBatch - 1 }

// read reads, in one round trip, the bound and the segment after the id, or its first part. For a negative id it
// reads only the bound.
func (l *Log) read(ctx context.Context, q lock.EventQuery, after int64, size step) (segment, bound, error) {
	if q.Name != "" {
		q.Limit = min(q.Limit, size.events)
	}
	var s segment
	var end bound
	shown := l.shown.Load()
	b := &pgx.Batch{}
	b.Queue(database.Begin) // each statement has a snapshot of its own
	database.QueueSettings(b, database.RowTimeout)
	b.Queue(sqlNewest).QueryRow(func(r pgx.Row) error { return r.Scan(&end.newest, &end.epoch) })
	b.Queue(sqlMarks, row.MarkSpace, row.MarkMask).QueryRow(func(r pgx.Row) error {
		var mark *int64
		err := r.Scan(&mark)
		end.resolve(mark, shown)
		s.upTo, s.end = max(after, end.upTo), true
		return err
	})
	if after >= 0 {
		queueEvents(b, q, after, size).Query(func(rows pgx.Rows) error {
			err := s.collect(rows, after, end.upTo, q.Limit)
			s.cut(q.Limit)
			return err
		})
		b.Queue(sqlHorizon, epoch.BatchOf(after)).QueryRow(func(r pgx.Row) (err error) {
			s.gap, err = gapAfter(r, after, end.upTo)
			return err
		})
	}
	b.Queue("commit")
	if err := l.db.Rest.SendBatch(ctx, b).Close(); err != nil {
		return segment{}, bound{}, err
	}
	l.show(end.upTo)
	return s, end, nil
}

// resolve completes the bound of which the newest batch is known. shown is an earlier bound.
func (b *bound) resolve(mark *int64, shown int64) {
	batch := b.newest
	if mark != nil {
		batch = min(batch, *mark)
	}
	b.upTo, b.newest = lastOf(batch), lastOf(b.newest)
	if shown <= b.newest { // otherwise the database has lost events
		b.upTo = max(b.upTo, shown)
	}
}

// show records that readers were given all events up to the id.
func (l *Log) show(id int64) {
	for shown := l.shown.Load(); shown < id && !l.shown.CompareAndSwap(shown, id); {
		shown = l.shown.Load()
	}
}

// queueEvents queues the statement that finds the first batches with events of q after the id.
func queueEvents(b *pgx.Batch, q lock.EventQuery, after int64, size step) *pgx.QueuedQuery {
	if q.Name != "" {
		return b.Queue(sqlHistory, row.NameKey(q.Name), q.Name, after, refsFor(q.Limit))
	}
	return b.Queue(sqlBatches, epoch.BatchOf(after+1), q.Prefix, size.batches, size.bytes)
}

// refsFor returns how many references of a lock a page needs. There is one in each commit in which the lock's
// revision divided by row.RefInterval changes. So between a cursor and the n-th reference after it, itself included,
// the lock has at least (n-1)*row.RefInterval - (row.RefInterval-2) events, unless it was pruned in between.
func refsFor(limit int) int {
	return (limit+2*row.RefInterval-3)/row.RefInterval + 1
}

// collect adds the events of the rows after one id and up to another, at least limit if there are as many.
func (s *segment) collect(rows pgx.Rows, after, upTo int64, limit int) error {
	var id int64
	var at time.Time
	var entries [][]byte
	var more bool
	_, err := pgx.ForEachRow(rows, []any{&id, &at, &entries, &more}, func() error {
		if len(s.events) >= limit || lastOf(id) > upTo {
			return nil
		}
		first := len(s.events)
		for _, element := range entries {
			entry, err := row.ParseEntry(element, id, at)
			if err != nil {
				return err
			}
			for _, e := range entry.Events {
				if e.ID > after {
					s.events = append(s.events, e)
				}
			}
		}
		slices.SortFunc(s.events[first:], func(a, b lock.Event) int { return cmp.Compare(a.ID, b.ID) })
		return nil
	})
	if more && lastOf(id) < upTo {
		s.upTo, s.end = lastOf(id), false
	}
	return err
}

// gapAfter reports whether a reader at the cursor may have missed events, or was given some that the database has
// lost.
func gapAfter(r pgx.Row, cursor, upTo int64) (bool, error) {
	var pruned, before, next int64
	err := r.Scan(&pruned, &before, &next)
	before = max(before, epoch.BatchOf(pruned))
	return cursor > 0 && (cursor < pruned || lastOf(next) <= upTo && lostBetween(before, epoch.BatchOf(cursor), next)), err
}

// lostBetween reports whether a fail-over or restore has lost the batch of a cursor. before is the last batch in the table
// up to the cursor's, and next the first one after it. A reader gets cursors of committed batches only, so one that is not
// in the table was pruned or lost. If the next batch lies epoch.BatchJump or more above, it began an epoch, and the cursor
// is from before: what that epoch did not find was lost.
func lostBetween(before, cursor, next int64) bool {
	return before < cursor && next-before >= epoch.BatchJump
}
