package store

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// prepare makes ready what run sends. If it fails nothing was.
func (s *swap) prepare(ctx context.Context, conn *pgx.Conn) (err error) {
	if s.statement, err = s.recents.prepared(ctx, conn, s.sql()); err != nil {
		return err
	}
	s.args, err = s.encode(conn.TypeMap(), s.statement.ParamOIDs)
	return err
}

// run swaps, and marks what was done.
func (s *swap) run(ctx context.Context, conn *pgx.Conn) error {
	forget(conn)
	sent := time.Now()
	rows := conn.PgConn().ExecStatement(ctx, s.statement, s.args, inBinary, inBinary)
	written, shown := s.read(rows)
	if _, err := rows.Close(); err != nil {
		return err
	}
	if err := confirmed(conn); err != nil {
		return err
	}
	s.conclude(written, reading{shown: shown, after: sent, before: time.Now()})
	return nil
}

var inBinary = []int16{pgx.BinaryFormatCode}

// sql returns the statement that does no more than needs be done.
func (s *swap) sql() string {
	switch {
	case s.crowded:
		return sqlSwapCrowded
	case slices.ContainsFunc(s.all, func(one *swapping) bool { return one.told != nil }):
		return sqlSwap
	}
	return sqlSwapRenewals
}

// encode returns the arguments of the statement.
func (s *swap) encode(types *pgtype.Map, oids []uint32) ([][]byte, error) {
	array := newSwapArray(s.recents.element, len(s.all))
	for _, one := range s.all {
		array.add(one)
	}
	e := s.recents.epoch
	var closedUntil []byte
	if !e.closedUntil.IsZero() {
		closedUntil = appendInstant(nil, e.closedUntil)
	}
	args := [][]byte{
		array.bytes(), appendInstant(nil, s.now), appendInstant(nil, s.now.Add(maxLag)),
		order.AppendUint64(nil, uint64(e.number)), closedUntil, order.AppendUint64(nil, uint64(e.longest.Milliseconds())),
		appendInstant(nil, s.recents.started), order.AppendUint64(nil, uint64(markSpace)),
	}
	if s.crowded {
		return s.appendCrowd(args, types, oids)
	}
	return args[:len(oids)], nil
}

// A written is what came back of a lock.
type written struct {
	one   *swapping
	left  anchor
	token lock.Token // the newest, drawn or not
}

// read reads what was written, and what the database's clock showed then.
func (s *swap) read(rows *pgconn.ResultReader) (all []written, shown time.Time) {
	all = make([]written, 0, len(s.all))
	for rows.NextRow() {
		v := rows.Values()
		if len(all) == 0 {
			shown = instantOf(v[4])
		}
		all = append(all, written{
			one:  s.all[order.Uint32(v[0])],
			left: anchor{at: placeIn(v[1]), version: order.Uint32(v[2])}, token: lock.Token(order.Uint64(v[3])),
		})
	}
	return all, shown
}

// conclude remembers what was written, now that it is durable.
func (s *swap) conclude(all []written, clock reading) {
	for _, w := range all {
		if w.one.draws {
			w.one.apply(s, w.token)
			s.granted = max(s.granted, int64(w.token))
		}
		w.one.done, w.one.left = true, w.left
		s.recents.put(w.one.after, w.left, s.self)
	}
	if len(all) > 0 {
		s.recents.clock = s.recents.clock.better(clock)
		s.began = clock.after.Add(s.now.Sub(clock.shown))
	}
}
