package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// lanes are for locks whose rows, or those of their sessions, another connection keeps locked: an open psql, a backup
// tool. Each such lock has an inbox of its own until that has nothing left to do, so it delays no other lock. Calls on
// one lock keep their order, and calls on several locks that of their lease_id.
type lanes struct {
	mu    sync.Mutex
	lanes map[string]*lane
	limit chan struct{} // has a value for each lane that waits for its row
}

type lane struct {
	*inbox
	calls int                  // not done yet; guarded by lanes.mu
	sets  map[lock.LeaseID]int // those of the calls that are on several locks; guarded by lanes.mu
}

// count adds n calls like c. The caller holds lanes.mu.
func (l *lane) count(c *call, n int) {
	l.calls += n
	id := c.Req.traits.Lease
	if !c.Req.isAboutLease() || len(c.Req.names) == 1 {
		return
	}
	if l.sets == nil {
		l.sets = make(map[lock.LeaseID]int)
	}
	if l.sets[id] += n; l.sets[id] == 0 {
		delete(l.sets, id)
	}
}

// serve answers the calls of a batch, except those on locks that have a lane.
func (w *worker) serve(calls []*call) {
	w.answerAll(w.inbox, w.lanes.divert(calls, w.lanes.find), w.setAside)
}

// find returns the lane of the first of the names that has one, or that in which a call on several locks with the same
// lease_id is, which must not be overtaken. The caller holds mu.
func (l *lanes) find(c *call) (found *lane) {
	id := c.Req.traits.Lease
	for _, name := range c.Req.names {
		of := l.lanes[name]
		if of != nil && of.sets[id] > 0 {
			return of
		}
		found = cmp.Or(found, of)
	}
	return found
}

// divert moves calls to the lanes that choose returns, and returns the others.
func (l *lanes) divert(calls []*call, choose func(*call) *lane) []*call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(calls), func(c *call) bool {
		lane := choose(c)
		if lane != nil {
			lane.count(c, 1)
			lane.putBack(c)
		}
		return lane != nil
	})
}

// setAside moves the calls on locks whose rows are locked to lanes, and returns the others.
func (w *worker) setAside(calls []*call) []*call {
	var names []string
	var sessions []lock.SessionRef
	for _, c := range calls {
		names = append(names, c.Req.names...)
		if ref := c.Req.traits.Session; ref != 0 {
			sessions = append(sessions, ref)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var locked []string
	var lockedSessions []lock.SessionRef
	err := w.db.Within(func(ctx context.Context) (err error) {
		var missing []string
		if locked, missing, err = row.LockedElsewhere(ctx, w.db, names); len(locked) == 0 {
			locked = missing // another session is creating one of them
		}
		if err == nil {
			var more []string
			lockedSessions, more, err = row.SessionsLockedElsewhere(ctx, w.db, sessions, names)
			locked = append(locked, more...)
		}
		return err
	})
	if err != nil {
		w.db.Log.Warn("cannot find rows locked by other sessions", "error", err)
		return calls
	}
	return w.lanes.divert(calls, func(c *call) *lane {
		for _, name := range c.Req.names {
			if slices.Contains(locked, name) {
				return w.open(name)
			}
		}
		if ref := c.Req.traits.Session; ref != 0 && slices.Contains(lockedSessions, ref) {
			return w.open(c.Req.names[0])
		}
		return nil
	})
}

// open returns the lane of the name, a new one if there is none. The caller holds mu.
func (w *worker) open(name string) *lane {
	l := &w.lanes
	if l.lanes == nil {
		l.lanes = make(map[string]*lane)
	}
	of := l.lanes[name]
	if of == nil {
		of = new(lane)
		of.inbox = newInbox(func(calls []*call) { w.serveLane(name, of, calls) })
		l.lanes[name] = of
	}
	return of
}

// serveLane answers calls in the lane, and closes it if they were the last.
func (w *worker) serveLane(name string, l *lane, calls []*call) {
	w.lanes.limit <- struct{}{}
	w.answerAll(l.inbox, calls, func(calls []*call) []*call { return calls })
	<-w.lanes.limit
	w.lanes.mu.Lock()
	defer w.lanes.mu.Unlock()
	for _, c := range calls {
		l.count(c, -1)
	}
	if l.calls == 0 {
		delete(w.lanes.lanes, name)
	}
}

// wait returns when all lanes are closed.
func (l *lanes) wait() {
	l.mu.Lock()
	open := slices.Collect(maps.Values(l.lanes))
	l.mu.Unlock()
	for _, lane := range open {
		lane.wait()
	}
}
