package store

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/batch"
)

// lanes are for names whose rows somebody outside keeps locked: an open psql, a
// backup tool. Each such name has a group of its own, so that it stalls nobody
// else, until that has nothing left to do. Calls on a name keep their order.
type lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane
	limit chan struct{} // how many may wait for a row at once
}

type lane struct {
	*group
	calls int // not yet through; guarded by lanes.mu
}

// runAhead runs the calls, but for those on names that have a lane.
func (s *Store) runAhead(g *group, calls []*call) {
	s.lanes.mu.Lock()
	if len(s.lanes.lanes) > 0 {
		calls = slices.DeleteFunc(slices.Clone(calls), func(c *call) bool {
			l := s.lanes.lanes[c.Req.Names()[0]]
			if l != nil {
				l.calls++
				l.Add(c)
			}
			return l != nil
		})
	}
	s.lanes.mu.Unlock()
	s.run(g, calls, s.setAside)
}

// setAside moves the calls on names that are locked outside to lanes, and returns
// the others.
func (s *Store) setAside(calls []*call) []*call {
	locked, err := s.lockedOf(s.want(calls).names)
	if err != nil {
		s.log.Warn("cannot find rows locked by other sessions", "error", err)
		return calls
	}
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool {
		name := c.Req.Names()[0]
		if !slices.Contains(locked, name) {
			return false
		}
		l := s.lane(name)
		l.calls++
		l.Add(c)
		return true
	})
}

// lockedOf returns which of the names somebody outside holds. If none of those
// that have a row is, it is one that has none yet: somebody is making it.
func (s *Store) lockedOf(names []string) ([]string, error) {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	locked, err := s.namesOf(ctx, sqlLockedAnchors, names)
	if err != nil || len(locked) > 0 {
		return locked, err
	}
	known, err := s.namesOf(ctx, sqlKnownAnchors, names)
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(known, name) }), err
}

func (s *Store) namesOf(ctx context.Context, sql string, names []string) ([]string, error) {
	rows, err := s.pool.Query(ctx, sql, names)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// lane returns the name's lane, a new one if there is none. The caller has the mutex.
func (s *Store) lane(name string) *lane {
	if s.lanes.lanes == nil {
		s.lanes.lanes = make(map[string]*lane)
	}
	l := s.lanes.lanes[name]
	if l == nil {
		l = new(lane)
		l.group = batch.New(maxBatch, maxQueue, func(calls []*call) { s.runAside(name, l, calls) })
		s.lanes.lanes[name] = l
	}
	return l
}

// runAside runs calls in the name's lane, and ends the lane if they were the last.
func (s *Store) runAside(name string, l *lane, calls []*call) {
	s.lanes.limit <- struct{}{}
	s.run(l.group, calls, func(calls []*call) []*call { return calls })
	<-s.lanes.limit
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if l.calls -= len(calls); l.calls == 0 {
		delete(s.lanes.lanes, name)
	}
}

// wait returns once all lanes are through.
func (l *lanes) wait() {
	l.mu.Lock()
	open := slices.Collect(maps.Values(l.lanes))
	l.mu.Unlock()
	for _, lane := range open {
		lane.Wait()
	}
}
