package store

import (
	"context"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// commitPatience is how long a group waits for a commit before it goes on
// without it.
const commitPatience = time.Second

// commit saves what was decided and answers the calls. If that fails it returns
// the calls and what is known of them.
//
// A commit is never cancelled, so it may take for ever: while no standby
// confirms, or until TCP gives a silent connection up. From one that takes long its group
// is relieved, so that other names go on; of as many as s.late has room for.
func (s *Store) commit(g *group, conn *pgxpool.Conn, t *tx, calls []*call, outcomes []outcome) ([]*call, fate, error) {
	err, late := s.patiently(g, calls, t.save)
	left, f, err := s.committed(conn, t, calls, outcomes, err)
	if !late {
		return left, f, err
	}
	<-s.late
	s.finish(left, f, err)
	return nil, again, nil
}

// patiently runs what commits, and returns its error. Late says that it has taken long, so
// that the group was relieved of it, and s.late has a value for it.
func (s *Store) patiently(g *group, calls []*call, save func(context.Context) error) (err error, late bool) {
	saved, relieved := make(chan struct{}), make(chan bool, 1)
	watch := time.AfterFunc(commitPatience, func() { relieved <- s.relieve(g, calls, saved) })
	err = save(context.WithoutCancel(s.ctx))
	close(saved)
	return err, !watch.Stop() && <-relieved
}

// relieve relieves the group, once there is room for another late commit, and returns
// true; or false if it was saved meanwhile.
func (s *Store) relieve(g *group, calls []*call, saved <-chan struct{}) bool {
	select {
	case <-saved:
		return false
	case s.late <- struct{}{}:
	}
	s.log.Warn("commit is slow", "calls", len(calls))
	g.DetachRunning()
	return true
}

// committed answers the calls, now that the commit's outcome is here.
func (s *Store) committed(conn *pgxpool.Conn, t *tx, calls []*call, outcomes []outcome, err error) ([]*call, fate, error) {
	defer conn.Release()
	if err != nil {
		f := fateOfCommit(err)
		if f != unknown {
			t.undo()
			rewind(calls)
		}
		return calls, f, err
	}
	s.epochs.note(t.epoch, t.greatest, t.events.newest())
	s.sweep.note(outcomes)
	s.crowd.note(t)
	s.seen.note(maps.Keys(t.locks))
	s.tell(outcomes)
	for i, c := range calls {
		c.Answer(outcomes[i], nil)
	}
	s.remember(conn.Conn(), t)
	return nil, again, nil
}

// remember has the connection remember the locks as the transaction left them. Through a
// pooler it would not be the same connection the next time.
func (s *Store) remember(conn *pgx.Conn, t *tx) {
	if s.pooled {
		return
	}
	r := recentsOf(conn)
	if r == nil {
		ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
		defer cancel()
		var err error
		if r, err = newRecents(ctx, conn); err != nil {
			s.log.Warn("cache disabled for this connection", "error", err)
			return
		}
	}
	r.note(t)
}

// finish sees to calls whose late commit failed: those that were not done get
// another turn.
func (s *Store) finish(calls []*call, f fate, err error) {
	if f == unknown {
		s.giveUp(calls, err)
		return
	}
	for _, c := range calls {
		s.group(c.Req.Names()[0]).Add(c)
	}
}

// giveUp answers calls of which nobody knows whether they were done.
func (s *Store) giveUp(calls []*call, err error) {
	s.outage.note()
	s.log.Error("commit outcome unknown", "error", err, "calls", len(calls))
	refuse(calls, unknownOutcome(err))
}
