package store

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// swapAhead does the calls that can be done from memory, and answers them. It returns the
// others whose callers are still there; and whether the connection is the caller's no
// longer. If it fails nothing was done of what it returns, and none of that has begun.
func (s *Store) swapAhead(ctx context.Context, g *group, conn *pgxpool.Conn, calls []*call) (rest []*call, gone bool, err error) {
	if err := s.lookAhead(ctx, conn.Conn(), calls); err != nil {
		rewind(calls)
		return calls, false, err
	}
	w := newSwap(recentsOf(conn.Conn()), s.self, calls, time.Now())
	if w == nil {
		return calls, false, nil
	}
	late := false
	if err = w.prepare(ctx, conn.Conn()); err != nil && fateOfCommit(err) == unknown { // nothing was sent
		rewind(calls)
		return calls, false, err
	}
	if err == nil {
		err, late = s.patiently(g, w.calls(), func(ctx context.Context) error { return w.run(ctx, conn.Conn()) })
	}
	rest, err = s.swapped(w, calls, err)
	rewind(rest)
	switch {
	case late:
		conn.Release()
		<-s.late
		s.finish(rest, again, nil)
		return nil, true, nil
	case err != nil:
		return rest, false, err
	}
	return begin(rest), false, nil
}

// swapped answers the calls that were done, and returns those to do otherwise; with an
// error if that has to wait.
func (s *Store) swapped(w *swap, calls []*call, err error) ([]*call, error) {
	switch f := fateOfCommit(err); {
	case err == nil:
		return s.concluded(w, calls), nil
	case pgconn.SafeToRetry(err), f == blocked:
		return calls, err
	case f == unknown:
		s.giveUp(w.calls(), err)
		return without(calls, w.calls()), nil
	case f == again: // a deadlock, a full disk, a standby: it passes, and a transaction will tell
		w.forget()
		return calls, err
	case ofData(err):
		w.forget()
	default:
		s.log.Warn("optimistic commit failed; cache disabled for this connection", "error", err)
		w.recents.end()
	}
	return calls, nil
}

// forget has the connection forget the locks of the swap.
func (w *swap) forget() {
	for _, one := range w.all {
		w.recents.drop(one.before.state.Name)
	}
}

// ofData is whether the error is about what a call brought, and not about the statement: a text
// that the database has no letters for, or a decision that did not hold any more when its
// row could be written, which divides by zero in sql/swap.sql.
func ofData(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22")
}

// concluded answers the calls whose locks were as remembered, and returns the others.
func (s *Store) concluded(w *swap, calls []*call) []*call {
	done, outcomes := make([]*call, 0, len(calls)), make([]outcome, 0, len(calls))
	for _, one := range w.all {
		if !one.done {
			w.recents.drop(one.before.state.Name)
			continue
		}
		for i, c := range one.calls {
			done, outcomes = append(done, c), append(outcomes, outcomeOf(c.Req, one.decisions[i], w.began))
		}
	}
	s.epochs.note(w.recents.epoch, w.granted, 0)
	s.sweep.note(outcomes)
	s.crowd.noteSwap(w)
	s.tell(outcomes)
	for i, c := range done {
		c.Answer(outcomes[i], nil)
	}
	return without(calls, done)
}

// without returns the calls that are not among those.
func without(calls, those []*call) []*call {
	if len(those) == len(calls) {
		return nil
	}
	among := make(map[*call]bool, len(those))
	for _, c := range those {
		among[c] = true
	}
	return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool { return among[c] })
}
