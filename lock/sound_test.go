package lock_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A decisionCheck is a command that was decided, and what it was decided on.
type decisionCheck struct {
	cmd    lock.Command
	self   lock.Replica
	clock  time.Time   // the database's, which the lock's time may be ahead of
	before lock.Record // what was to be decided on
	given  lock.Record // the same, as Apply was given it
	drawn  int         // tokens
	paused bool        // nothing is granted
	lock.Decision
	skipSlow bool // to be checked without comparing whole locks
}

// check holds the decision against all that any decision must keep.
func (x decisionCheck) check() error {
	rules := []func() error{
		x.checkExclusion, x.checkPlaces, x.checkHeadBlocked, x.checkNoOvertaking, x.checkEventNumbers, x.checkPromoted,
		x.checkDue, x.checkNeeds,
	}
	if !x.skipSlow {
		rules = append(rules, x.checkInputUnchanged, x.checkChanged)
	}
	for _, rule := range rules {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

// withSpareCapacity returns s with slices into which somebody could append in place, and with waiters of its own.
func withSpareCapacity(s lock.Record) lock.Record {
	s.Leases, s.Queue = slices.Grow(slices.Clone(s.Leases), 2), slices.Grow(slices.Clone(s.Queue), 2)
	for i, w := range s.Queue {
		own := *w
		s.Queue[i] = &own
	}
	return s
}

func (x decisionCheck) checkInputUnchanged() error {
	leases, queue := x.given.Leases, x.given.Queue
	spare := reflect.ValueOf(leases[:len(leases)+1][len(leases)]).IsZero() && reflect.ValueOf(queue[:len(queue)+1][len(queue)]).IsZero()
	if !equalRecords(x.before, x.given) || !spare {
		return errors.New("changed the state that it was given")
	}
	return nil
}

func equalRecords(a, b lock.Record) bool {
	leases := slices.EqualFunc(a.Leases, b.Leases, func(a, b lock.Lease) bool { return reflect.DeepEqual(a, b) })
	queue := slices.EqualFunc(a.Queue, b.Queue, func(a, b *lock.Waiter) bool { return reflect.DeepEqual(a, b) })
	a.Leases, a.Queue, b.Leases, b.Queue = nil, nil, nil, nil
	return leases && queue && reflect.DeepEqual(a, b)
}

func (x decisionCheck) checkChanged() error {
	if !x.Changed && (len(x.Events) > 0 || !equalRecords(x.before, x.Locks[0])) {
		return errors.New("changed the lock and says that it did not")
	}
	return nil
}

// checkNeeds: what is promised is promised for a lock for which nobody
// waits, and of which no more than one lease can be over.
func (x decisionCheck) checkNeeds() error {
	tokens, events := x.cmd.Needs()
	if alone := len(x.before.Queue) == 0 && len(x.before.Leases) <= 1; alone && (x.drawn > tokens || len(x.Events) > events) {
		return fmt.Errorf("drew %d tokens and made %d events, but said at most %d and %d", x.drawn, len(x.Events), tokens, events)
	}
	return nil
}

// checkExclusion: the leases that there are may be there together.
func (x decisionCheck) checkExclusion() error {
	s := x.Locks[0]
	for i, l := range s.Leases {
		if !compatible(s.Leases[:i], s.Capacity, l.Mode, s.Capacity) {
			return fmt.Errorf("leases that exclude each other: %+v", s.Leases)
		}
		for _, o := range s.Leases[:i] {
			// A reader that comes after a whole phase was revoked begins another one.
			phase := l.Mode == lock.Shared && !o.Revoked() && !l.Revoked()
			if o.ID == l.ID || o.Slot == l.Slot || phase && o.Token != l.Token || l.Mode != lock.Shared && o.Token == l.Token {
				return fmt.Errorf("leases have a lease_id, a slot or a token that they may not: %+v", s.Leases)
			}
		}
		if (l.Slot == 0) != (l.Mode == lock.Exclusive) || l.Slot > lock.MaxHolders || l.Mode == lock.Permit && l.Slot > s.Capacity {
			return fmt.Errorf("a lease sits in slot %d: %+v", l.Slot, l)
		}
		if l.Token > s.Token {
			return fmt.Errorf("token %d is above the newest, %d", l.Token, s.Token)
		}
	}
	if permits := len(s.Leases) > 0 && s.Leases[0].Mode == lock.Permit; permits != (s.Capacity != 0) {
		return fmt.Errorf("a capacity of %d with the leases %+v", s.Capacity, s.Leases)
	}
	return nil
}

// compatible is whether a lease of the mode may be beside the leases held: the
// table of the modes, written a second time.
func compatible(held []lock.Lease, capacity int, mode lock.Mode, asked int) bool {
	for _, l := range held {
		if l.Mode != mode || mode == lock.Exclusive {
			return false
		}
	}
	switch {
	case len(held) == 0:
		return true
	case mode == lock.Permit:
		return asked == capacity && len(held) < capacity
	}
	return len(held) < lock.MaxHolders
}

// checkPlaces: places are in order; a lease_id has one place at most, and
// beside it a lease only if nobody has fetched that.
func (x decisionCheck) checkPlaces() error {
	s := x.Locks[0]
	seats := map[lock.LeaseID]bool{}
	for i, w := range s.Queue {
		if seats[w.Lease.ID] || i > 0 && w.Place <= s.Queue[i-1].Place {
			return fmt.Errorf("the queue is in disorder: %+v", s.Queue)
		}
		seats[w.Lease.ID] = true
	}
	for _, l := range s.Leases {
		if l.Unclaimed() != seats[l.ID] {
			return fmt.Errorf("a lease that was fetched has a place, or one that was not has none: %+v", l)
		}
	}
	return nil
}

// attachedWaiters returns those of s who are there, and have not been granted the lock.
func (x decisionCheck) attachedWaiters(s lock.Record) []*lock.Waiter {
	return slices.DeleteFunc(slices.Clone(s.Queue), func(w *lock.Waiter) bool {
		return !attached(*w, x.Now, x.clock, x.self) || slices.ContainsFunc(s.Leases, func(l lock.Lease) bool { return l.ID == w.Lease.ID })
	})
}

// attached is whether somebody is there at an instant of the lock's time, while
// the database's clock, by which replicas live, shows another.
func attached(w lock.Waiter, now, clock time.Time, self lock.Replica) bool {
	if w.Replica != self && !clock.Before(w.AliveUntil) {
		return false
	}
	w.AliveUntil = w.Until
	return w.Attached(now, self)
}

// checkHeadBlocked: the first who waits cannot be served. While the database may have
// lost leases nobody is.
func (x decisionCheck) checkHeadBlocked() error {
	s := x.Locks[0]
	if x.paused {
		if i := slices.IndexFunc(x.Events, func(e lock.Event) bool { return e.Kind == lock.Granted }); i >= 0 {
			return fmt.Errorf("granted while nothing is: %+v", x.Events[i])
		}
		return nil
	}
	if w := x.attachedWaiters(s); len(w) > 0 && compatible(s.Leases, s.Capacity, w[0].Lease.Mode, w[0].Capacity) {
		return fmt.Errorf("the first waiter could have the lock: %+v", w[0])
	}
	return nil
}

// checkNoOvertaking: who has been there since before the decision and waits on was
// overtaken by no grant, neither to a later place nor to a newcomer.
func (x decisionCheck) checkNoOvertaking() error {
	before := x.before
	before.Leases = nil // also who had been granted the lock and lost it again
	there := map[lock.Attachment]bool{}
	for _, w := range x.attachedWaiters(before) {
		there[w.Attachment] = true
	}
	for _, w := range x.attachedWaiters(x.Locks[0]) {
		for _, e := range x.Events {
			if e.Kind == lock.Granted && there[w.Attachment] && (e.Place == 0 || e.Place > w.Place) {
				return fmt.Errorf("place %d was overtaken by the grant of place %d", w.Place, e.Place)
			}
		}
	}
	return nil
}

func (x decisionCheck) checkEventNumbers() error {
	r := x.before.Revision
	for _, e := range x.Events {
		if r++; e.Revision != r || !e.At.Equal(x.Now) {
			return fmt.Errorf("revision %d is that of %+v", r, e)
		}
	}
	if x.Locks[0].Revision != r {
		return fmt.Errorf("the lock is at revision %d, the last event at %d", x.Locks[0].Revision, r)
	}
	return nil
}

// checkPromoted: each has its lease, to fetch if another replica serves it.
func (x decisionCheck) checkPromoted() error {
	for _, w := range x.Promoted {
		if !slices.ContainsFunc(x.Locks[0].Leases, func(l lock.Lease) bool {
			return l.ID == w.Lease.ID && l.Attachment == w.Attachment && l.Unclaimed() == (w.Replica != x.self)
		}) {
			return fmt.Errorf("promoted without a lease: %+v", w)
		}
	}
	return nil
}

// checkDue: there is a next instant exactly if there is somebody, and it is to come.
func (x decisionCheck) checkDue() error {
	if idle := len(x.Locks[0].Leases)+len(x.Locks[0].Queue) == 0; x.Due.IsZero() != idle || !idle && !x.Due.After(x.Now) {
		return fmt.Errorf("due at %v, decided at %v", x.Due, x.Now)
	}
	return nil
}
