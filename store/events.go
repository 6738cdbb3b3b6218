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
// The ids of one lock's events are in order, since they are drawn with its row locked. Across locks they do not follow the
// order of commits: of two transactions the one with the lower ids may commit last, and a reader that had passed those ids
// would never see them. So a reader reads, in this order, the end of the committed events; the least mark of an open
// transaction; and the events up to the lesser of the two. A transaction that drew an id up to there has committed by then,
// or never will.
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
	var end eventsEnd
	err = s.read(ctx, func(ctx context.Context) (err error) {
		if end, err = s.eventsEnd(ctx); err != nil || after < 0 {
			return err
		}
		if page.Items, err = s.eventsBetween(ctx, after, end.settled, q); err != nil || after == 0 {
			return err
		}
		page.Gap, err = s.missed(ctx, after, end.settled)
		return err
	})
	if err == nil {
		s.tellUpTo(end.settled)
	}
	page.Next = strconv.FormatInt(pageEnd(page.Items, q.Limit, max(after, end.settled)), 10)
	return page, err
}

// missed reports whether a reader at the cursor may have missed events, or was told of some that the history has lost since.
func (s *Store) missed(ctx context.Context, cursor, settled int64) (bool, error) {
	var pruned, before, next int64
	err := s.pool.QueryRow(ctx, sqlHorizon, cursor).Scan(&pruned, &before, &next)
	return cursor < pruned || next <= settled && lostBetween(max(before, pruned), cursor, next), err
}

// lostBetween reports whether a cursor is that of an event which a fail-over or a restore has lost, given the newest event
// up to the cursor and the next one, zero for none. A cursor is never ahead of the committed events, so one that is ahead
// of those in the table at the beginning of an epoch is about events that are gone. An epoch leaves a gap of jump ids.
func lostBetween(before, cursor, next int64) bool {
	return before < cursor && next-before >= jump
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

// An eventsEnd is how far events can be read.
type eventsEnd struct {
	settled int64 // no event up to this id is missing that will ever be there
	newest  int64 // the newest committed event
	epoch   int64 // the newest epoch
}

// eventsEnd returns how far events can be read now. It does not go back behind what was told: a transaction that was about
// to set its mark when another reader looked sets it lower than the ids that it draws then.
func (s *Store) eventsEnd(ctx context.Context) (end eventsEnd, err error) {
	told := s.told.Load()
	var open *int64
	b := &pgx.Batch{}
	b.Queue(sqlEventsEnd).QueryRow(func(row pgx.Row) error { return row.Scan(&end.newest, &end.epoch) })
	b.Queue(sqlEventsOpen, markSpace, markMask).QueryRow(func(row pgx.Row) error { return row.Scan(&open) })
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return eventsEnd{}, err
	}
	end.settled = end.newest
	if open != nil {
		end.settled = min(end.newest, *open)
	}
	if told <= end.newest { // otherwise the history has lost events
		end.settled = max(end.settled, told)
	}
	return end, nil
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
		return 0, lock.Invalid("cursor", "is invalid; pass next_cursor unchanged, the id of an event, or now, or omit it to start over")
	}
	return after, nil
}
