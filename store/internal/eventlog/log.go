package eventlog

import (
	"cmp"
	"context"
	"embed"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// maxSteps bounds the steps of a page: it reads a hundred thousand batches at most, which costs half a second of a core.
const maxSteps = 100

// A Log reads the events of the database. Its methods are safe for concurrent use.
type Log struct {
	db       *database.DB
	draining <-chan struct{}
	here     func(name string) error
	tail     *tail
	shown    atomic.Int64 // the greatest bound, an event id
}

// New returns a Log. When draining is closed, calls that wait are refused. Calls that wait for the history of one lock
// end with the error of here for it, if there is one when they are woken. Run must run for calls to wait.
func New(db *database.DB, draining <-chan struct{}, here func(name string) error) *Log {
	return &Log{db: db, draining: draining, here: here, tail: newTail()}
}

// An item is an event, or an entry that cannot be read. Of the latter, the Event has only the Name and the ID, which is
// the first one of the batch. So it is found once between the events before and after it.
type item struct {
	*lock.Event
	unreadable *paddock.Unreadable // nil for an event
}

// selectedBy reports whether the query selects the item. An entry that cannot be read is selected by its name alone.
func (i item) selectedBy(q *paddock.EventQuery) bool {
	if i.unreadable != nil {
		q = &paddock.EventQuery{Names: q.Names, Prefix: q.Prefix, Sessions: q.Sessions}
	}
	return q.Selects(i.Event)
}

// A segment is the items that a query selects between two ids.
type segment struct {
	items  []item    // in the order of the query; what cannot be read is before the event with the same id
	events int       // the number of events among the items, at most the limit of the query
	read   time.Time // the instant of the last batch that was read; zero for none
	upTo   int64     // these are all selected items up to this id; if they descend, all from this id on
	end    bool      // there were no batches after upTo up to the bound; if they descend, before upTo
	over   bool      // the query will never select an event after these
	gap    bool      // events may be missing before these
}

// add appends the next items that q selects, until the segment has q.Limit events.
func (s *segment) add(next []item, q *paddock.EventQuery) {
	for _, i := range next {
		if s.events == q.Limit {
			return
		}
		if !i.selectedBy(q) {
			continue
		}
		s.items = append(s.items, i)
		if i.unreadable != nil {
			continue
		}
		if s.events++; s.events == q.Limit {
			s.upTo, s.end = i.ID, false
		}
	}
}

// split returns the events, and what cannot be read, each once.
func (s *segment) split() (events []lock.Event, unreadable []paddock.Unreadable) {
	events = slices.Grow(events, s.events)
	for _, i := range s.items {
		if i.unreadable != nil {
			unreadable = append(unreadable, *i.unreadable)
		} else {
			events = append(events, *i.Event)
		}
	}
	return events, slices.Compact(unreadable)
}

// Page returns a page of events, see paddock.Service, without EndedSessions. If q.Wait is positive it waits for up to
// that long while the page is empty, and until enough is closed, which may be nil. Errors are those of package lock.
//
// A page is read in steps of bounded work. It has fewer events than its limit only if there are no more, if there is
// a gap, or if they are not among the batches of maxSteps steps. In that case the page may even be empty, but its Next
// is further on, and SearchedTo says how far.
func (l *Log) Page(
	ctx context.Context, q paddock.EventQuery, enough <-chan struct{},
) (page paddock.Page[lock.Event], err error) {
	if q, err = q.Resolve(); err != nil {
		return page, err
	}
	cursor, err := parseCursor(q)
	if err != nil {
		return page, err
	}
	ids, err := l.span(ctx, q, cursor)
	if err != nil {
		return page, err
	}
	var s segment
	if q.Wait > 0 {
		s, err = l.await(ctx, q, ids.after, enough)
	} else {
		s, err = l.stored(ctx, q, ids)
	}
	if err != nil {
		return page, err
	}
	if q.Descending {
		s.gap = s.over && ids.pruned
	} else if !q.Since.IsZero() && q.Cursor == "" {
		s.gap = ids.pruned
	}
	page.Gap = s.gap
	page.Items, page.Unreadable = s.split()
	if !s.over {
		page.Next = strconv.FormatInt(s.upTo, 10)
	}
	if !s.over && !s.end && s.events < q.Limit {
		page.SearchedTo = s.read
	}
	return page, nil
}

// stored reads the segment at the beginning of the span from the database, step by step. If the span begins at a
// negative id, that is the bound, and there are no events. For several names it makes one step: where that does not
// reach the bound, there is a gap. Otherwise many clients that were cut off together would each read all events.
func (l *Log) stored(ctx context.Context, q paddock.EventQuery, ids span) (segment, error) {
	s := segment{upTo: ids.after}
	if q.Descending {
		s.upTo = ids.before
	}
	for n, size := 1, firstStep(q.Limit); ; n, size = n+1, nextStep {
		var next segment
		var end bound
		err := l.db.Read(ctx, func(ctx context.Context) (err error) {
			rest := q
			rest.Limit -= s.events
			next, end, err = l.read(ctx, rest, s.upTo, size)
			return err
		})
		if err != nil {
			return s, err
		}
		if q.FollowsSeveral() && !next.end && next.events < q.Limit {
			return segment{upTo: end.upTo, gap: true}, nil
		}
		next.items = append(s.items, next.items...)
		next.events, next.gap = s.events+next.events, s.gap || next.gap
		s, s.over = next, ids.passed(q, next)
		if s.end || s.over || s.gap || s.events == q.Limit || n == maxSteps {
			return s, nil
		}
	}
}

// parseCursor returns the id that is next to the page, which does not have it. It is negative for the bound.
func parseCursor(q paddock.EventQuery) (int64, error) {
	switch {
	case q.Cursor == "" && q.Descending:
		return math.MaxInt64, nil
	case q.Cursor == "":
		return 0, nil
	case q.Cursor == paddock.CursorNow:
		return -1, nil
	}
	id, err := strconv.ParseInt(q.Cursor, 10, 64)
	if err != nil || id < 0 || q.Cursor != strconv.FormatInt(id, 10) {
		return 0, lock.Invalid("cursor",
			"is invalid; pass next_cursor unchanged, the id of an event, or now, or omit it to start over")
	}
	return id, nil
}

//go:embed sql/*.sql
var files embed.FS

var (
	sqlNewest  = database.Statement(files, "newest")
	sqlMarks   = database.Statement(files, "marks")
	sqlHorizon = database.Statement(files, "horizon")

	sqlBatches = database.Statement(files, "batches")
	sqlHistory = database.Statement(files, "history")
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

// firstOf returns the least id that an event of the batch can have.
func firstOf(batch int64) int64 { return batch * row.EventsPerBatch }

// lastOf returns the greatest id that an event of the batch can have.
func lastOf(batch int64) int64 { return batch*row.EventsPerBatch + row.EventsPerBatch - 1 }

// read reads, in one round trip, the bound and the segment next to the id, or its first part. For a negative id it
// reads only the bound.
func (l *Log) read(ctx context.Context, q paddock.EventQuery, from int64, size step) (segment, bound, error) {
	if readsHistory(q) {
		q.Limit = min(q.Limit, size.events)
	}
	var s segment
	var end bound
	shown := l.shown.Load()
	b := &pgx.Batch{}
	b.Queue(database.Begin) // each statement has a snapshot of its own
	database.QueueSettings(b, database.RowTimeout)
	b.Queue(sqlNewest.In(l.db.Schema)).QueryRow(func(r pgx.Row) error { return r.Scan(&end.newest, &end.epoch) })
	b.Queue(sqlMarks.In(l.db.Schema), row.MarkSpace(l.db.Schema), row.MarkMask).QueryRow(func(r pgx.Row) error {
		var mark *int64
		err := r.Scan(&mark)
		end.resolve(mark, shown)
		s.upTo, s.end = max(from, end.upTo), true
		if q.Descending {
			s.upTo = 0
		}
		return err
	})
	if from >= 0 {
		l.queueEvents(b, q, from, size).Query(func(rows pgx.Rows) error {
			return l.collect(&s, rows, q, from, end.upTo)
		})
	}
	if from >= 0 && !q.Descending {
		b.Queue(sqlHorizon.In(l.db.Schema), epoch.BatchOf(from)).QueryRow(func(r pgx.Row) (err error) {
			s.gap, err = gapAfter(r, from, end.upTo)
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

// QueueComplete queues the statements that set batch to the newest one such that all events up to it that will ever exist
// are visible to the statements after these.
func QueueComplete(b *pgx.Batch, in schema.Name, batch *int64) {
	b.Queue(sqlNewest.In(in)).QueryRow(func(r pgx.Row) error { return r.Scan(batch, new(int64)) })
	b.Queue(sqlMarks.In(in), row.MarkSpace(in), row.MarkMask).QueryRow(func(r pgx.Row) error {
		var mark *int64
		err := r.Scan(&mark)
		if mark != nil {
			*batch = min(*batch, *mark)
		}
		return err
	})
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

// readsHistory reports whether the events of q are read from the history of one lock, and not from all batches.
func readsHistory(q paddock.EventQuery) bool { return len(q.Names) == 1 && !q.FollowsSeveral() }

// queueEvents queues the statement that finds the first batches with events of q next to the id.
func (l *Log) queueEvents(b *pgx.Batch, q paddock.EventQuery, from int64, size step) *pgx.QueuedQuery {
	if readsHistory(q) {
		return b.Queue(sqlHistory.In(l.db.Schema), row.NameKey(q.Names[0]), q.Names[0], from, refsFor(q.Limit), q.Descending)
	}
	first := epoch.BatchOf(from + 1)
	if q.Descending {
		first = epoch.BatchOf(from - 1)
	}
	return b.Queue(sqlBatches.In(l.db.Schema), first, q.Prefix, size.batches, size.bytes, q.Descending)
}

// refsFor returns how many references of a lock a page needs. There is one in each commit in which the lock's
// revision divided by row.RefInterval changes. So between a cursor and the n-th reference after it, itself included,
// the lock has at least (n-1)*row.RefInterval - (row.RefInterval-2) events, unless it was pruned in between.
func refsFor(limit int) int {
	return (limit+2*row.RefInterval-3)/row.RefInterval + 1
}

// collect adds the items of the rows that q selects, from one id on and up to the bound. An entry that cannot be read
// costs no other one.
func (l *Log) collect(s *segment, rows pgx.Rows, q paddock.EventQuery, from, bound int64) error {
	var id int64
	var at time.Time
	var entries [][]byte
	var more bool
	order := 1
	if q.Descending {
		order = -1
	}
	_, err := pgx.ForEachRow(rows, []any{&id, &at, &entries, &more}, func() error {
		if s.events == q.Limit || lastOf(id) > bound {
			return nil
		}
		s.read = at.UTC()
		var unreadable, events []item
		for _, element := range entries {
			entry, err := row.ParseEntry(element, id, at)
			if err != nil {
				bad := l.db.NoteMalformed(err)
				unreadable = append(unreadable, item{&lock.Event{ID: firstOf(id), Name: bad.Name}, &bad})
			}
			for i := range entry.Events {
				events = append(events, item{Event: &entry.Events[i]})
			}
		}
		batch := slices.DeleteFunc(append(unreadable, events...), func(i item) bool { return order*cmp.Compare(i.ID, from) <= 0 })
		slices.SortStableFunc(batch, func(a, b item) int { return order * cmp.Compare(a.ID, b.ID) })
		s.add(batch, &q)
		return nil
	})
	switch {
	case s.events == q.Limit: // upTo is the id of the last one
	case more && q.Descending:
		s.upTo, s.end = firstOf(id), false
	case more && lastOf(id) < bound:
		s.upTo, s.end = lastOf(id), false
	}
	return err
}

// gapAfter reports whether a reader at the cursor may have missed events, or was given some that the database has
// lost.
func gapAfter(r pgx.Row, cursor, upTo int64) (bool, error) {
	var pruned, before, next int64
	err := r.Scan(&pruned, &before, &next)
	if before == epoch.BatchOf(cursor) {
		return false, err // it is there, so what followed it is
	}
	before = max(before, epoch.BatchOf(pruned))
	return cursor > 0 && (cursor < pruned || lastOf(next) <= upTo && lostBetween(before, epoch.BatchOf(cursor), next)), err
}

// lostBetween reports whether a fail-over or restore has lost the batch of a cursor. before is the last batch in the
// table up to the cursor's, and next the first one after it. A reader gets cursors of committed batches only, so one
// that is not in the table was pruned or lost. If the next batch lies epoch.BatchJump or more above, it began an
// epoch, and the cursor is from before: what that epoch did not find was lost.
func lostBetween(before, cursor, next int64) bool {
	return before < cursor && next-before >= epoch.BatchJump
}
