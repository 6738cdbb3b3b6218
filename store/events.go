package store

import (
	"context"
	"encoding/base64"
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
	var page lock.Page[lock.Event]
	q, err := q.Resolve()
	if err != nil {
		return page, err
	}
	after, err := eventCursor(q.Cursor)
	if err != nil {
		return page, err
	}
	err = s.read(ctx, func(ctx context.Context) error {
		settled, err := s.settled(ctx)
		if err != nil {
			return err
		}
		rows, err := s.eventRows(ctx, after, settled, q)
		if err != nil {
			return err
		}
		page.Items, err = pgx.CollectRows(rows, scanEvent)
		return err
	})
	if n := len(page.Items); n > 0 {
		after = page.Items[n-1].ID
	}
	page.Next = base64.RawURLEncoding.EncodeToString(strconv.AppendInt(nil, after, 10))
	return page, err
}

func (s *Store) eventRows(ctx context.Context, after, upTo int64, q lock.EventQuery) (pgx.Rows, error) {
	if q.Name != "" {
		return s.pool.Query(ctx, sqlEventsOf, after, upTo, q.Name, q.Limit)
	}
	return s.pool.Query(ctx, sqlListEvents, after, upTo, q.Prefix, beyond(q.Prefix), q.Limit)
}

// settled returns an id up to which no event is missing that will ever be there.
func (s *Store) settled(ctx context.Context) (int64, error) {
	var drawn int64
	var open *int64
	b := &pgx.Batch{}
	b.Queue(sqlEventsDrawn).QueryRow(func(row pgx.Row) error { return row.Scan(&drawn) })
	b.Queue(sqlEventsOpen, markSpace, markMask).QueryRow(func(row pgx.Row) error { return row.Scan(&open) })
	if err := s.pool.SendBatch(ctx, b).Close(); err != nil {
		return 0, err
	}
	if open != nil {
		return min(drawn, *open), nil
	}
	return drawn, nil
}

func eventCursor(cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, badCursor()
	}
	after, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || after < 0 {
		return 0, badCursor()
	}
	return after, nil
}
