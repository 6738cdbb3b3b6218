package store

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// The key of the advisory lock that a deciding transaction takes before it draws
// event ids: markSpace, and the greatest id drawn so far in the lower bits.
const (
	markSpace int64 = 0x5ADD << 48
	markMask  int64 = 1<<48 - 1
)

// Events returns a page of events, see lock.Service.
//
// Ids follow what happened to a lock, since they are drawn with its row locked.
// They do not follow the order of commits: of two transactions the one with the
// lower ids may commit last. A reader that went by what it sees would pass those
// for ever. So it reads, in this order, the greatest id that was drawn; the least
// mark of a transaction still open; and the events up to the lesser of the two.
// Whoever drew an id up to there has committed before the events are read, or
// never will.
func (s *Store) Events(ctx context.Context, q lock.EventQuery) (lock.Page[lock.Event], error) {
	q, err := q.Resolve()
	if err != nil {
		return lock.Page[lock.Event]{}, err
	}
	after, err := eventCursor(q.Cursor)
	if err != nil {
		return lock.Page[lock.Event]{}, err
	}
	if q.Wait > 0 {
		return s.awaitEvents(ctx, q, after)
	}
	return s.eventPage(ctx, q, after)
}

// eventPage reads a page of events after the id, which is negative for the end.
func (s *Store) eventPage(ctx context.Context, q lock.EventQuery, after int64) (page lock.Page[lock.Event], err error) {
	settled, pruned := int64(0), int64(0)
	err = s.read(ctx, func(ctx context.Context) (err error) {
		if settled, _, err = s.settled(ctx); err != nil || after < 0 {
			return err
		}
		if page.Items, err = s.eventsBetween(ctx, after, settled, q); err != nil || after == 0 {
			return err
		}
		return s.pool.QueryRow(ctx, sqlHorizon).Scan(&pruned)
	})
	if err == nil {
		s.tellUpTo(settled)
	}
	page.Gap = after > 0 && after < pruned
	page.Next = strconv.FormatInt(pageEnd(page.Items, q.Limit, max(after, settled)), 10)
	return page, err
}

// pageEnd returns the cursor after a page: the last event of a full one, else up
// to where there was nothing more to find.
func pageEnd(events []lock.Event, limit int, settled int64) int64 {
	if len(events) == limit {
		return events[limit-1].ID
	}
	return settled
}

// eventsBetween returns the first events of q after one id and up to another.
func (s *Store) eventsBetween(ctx context.Context, after, upTo int64, q lock.EventQuery) ([]lock.Event, error) {
	var rows pgx.Rows
	var err error
	if q.Name != "" {
		rows, err = s.pool.Query(ctx, sqlEventsOf, after, upTo, q.Name, q.Limit)
	} else {
		rows, err = s.pool.Query(ctx, sqlListEvents, after, upTo, q.Prefix, beyond(q.Prefix), q.Limit)
	}
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanEvent)
}

// settled returns an id up to which no event is missing that will ever be there,
// and the greatest that was drawn. It is not behind what was told: a transaction that was about to
// set its mark when another reader looked sets it lower than the ids that it draws then.
func (s *Store) settled(ctx context.Context) (settled, drawn int64, err error) {
	told := s.told.Load()
	var open *int64
	b := &pgx.Batch{}
	b.Queue(sqlEventsDrawn).QueryRow(func(row pgx.Row) error { return row.Scan(&drawn) })
	b.Queue(sqlEventsOpen, markSpace, markMask).QueryRow(func(row pgx.Row) error { return row.Scan(&open) })
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return 0, 0, err
	}
	settled = drawn
	if open != nil {
		settled = min(drawn, *open)
	}
	if told <= drawn { // else the history is another
		settled = max(settled, told)
	}
	return settled, drawn, nil
}

// tellUpTo notes that a reader was told of all events up to the id.
func (s *Store) tellUpTo(id int64) {
	for told := s.told.Load(); told < id && !s.told.CompareAndSwap(told, id); {
		told = s.told.Load()
	}
}

// eventCursor returns the id after which a page begins, negative for the end.
func eventCursor(cursor string) (int64, error) {
	switch cursor {
	case "":
		return 0, nil
	case lock.CursorNow:
		return -1, nil
	}
	after, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || after < 0 || cursor != strconv.FormatInt(after, 10) {
		return 0, lock.Invalid("cursor", "is none that a page gave; send next_cursor or the id of an event, or now, or none to begin anew")
	}
	return after, nil
}
