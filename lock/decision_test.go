package lock_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A decisionCheck is a decision with its inputs.
type decisionCheck struct {
	cmd    lock.Command
	self   lock.Replica
	clock  time.Time   // the database's clock; the lock's time may be ahead of it
	before lock.Record // the input
	given  lock.Record // the copy of the input that Apply received
	drawn  int         // number of tokens drawn
	paused bool        // grants are paused, or the lock is frozen
	ruled  bool        // a rule may have changed the capacity since the lock was stored
	lock.Decision
}

// check checks the rules that every decision must keep.
func (x decisionCheck) check() error {
	rules := []func() error{
		x.checkExclusion, x.checkPlaces, x.checkHeadBlocked, x.checkNoOvertaking, x.checkEventNumbers, x.checkPromoted,
		x.checkDue, x.checkTokens, x.checkEnded, x.checkMeasures, x.checkInputUnchanged, x.checkChanged,
	}
	for _, rule := range rules {
		if err := rule(); err != nil {
			return err
		}
	}
	return nil
}

// withSpareCapacity returns a copy of s whose slices have room to append in place, with its own waiters.
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
	spare := reflect.ValueOf(leases[:len(leases)+1][len(leases)]).IsZero() &&
		reflect.ValueOf(queue[:len(queue)+1][len(queue)]).IsZero()
	if !equalRecords(x.before, x.given) || !spare {
		return errors.New("modified its input")
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
	before, after := x.before, x.Locks[0]
	if x.ruled { // the capacity of a rule need not be stored
		before, after = withoutCapacity(before), withoutCapacity(after)
	}
	if !x.Changed && (len(x.Events) > 0 || !equalRecords(before, after)) {
		return errors.New("changed the lock, and Changed is false")
	}
	return nil
}

// withoutCapacity returns the record without its capacity and that of its waiters.
func withoutCapacity(r lock.Record) lock.Record {
	r.Capacity, r.Queue = 0, slices.Clone(r.Queue)
	for i, w := range r.Queue {
		own := *w
		own.Capacity = 0
		r.Queue[i] = &own
	}
	return r
}

// checkTokens: only a grant draws a token.
func (x decisionCheck) checkTokens() error {
	grants := 0
	for _, e := range x.Events {
		if e.Kind == lock.Granted {
			grants++
		}
	}
	if x.drawn > min(grants, lock.MaxTokens) {
		return fmt.Errorf("drew %d tokens for %d grants", x.drawn, grants)
	}
	return nil
}

// checkEnded: Ended has each lease that is gone or was revoked now, and no other but one that was granted and
// withdrawn in this decision.
func (x decisionCheck) checkEnded() error {
	ended := make(map[lock.Token]map[lock.LeaseID]bool)
	for _, e := range x.Ended {
		if ended[e.Token] == nil {
			ended[e.Token] = make(map[lock.LeaseID]bool)
		}
		ended[e.Token][e.ID] = true
		still := slices.ContainsFunc(x.Locks[0].Leases, func(l lock.Lease) bool {
			return l.ID == e.ID && l.Token == e.Token && !l.Revoked()
		})
		if still && e.How != lock.Withdrawn { // its place was kept, and it was granted again
			return fmt.Errorf("%+v has ended, and is still active", e)
		}
	}
	for _, l := range x.before.Leases {
		still := slices.ContainsFunc(x.Locks[0].Leases, func(o lock.Lease) bool {
			return o.ID == l.ID && o.Token == l.Token && (!o.Revoked() || l.Revoked())
		})
		if !still && !l.Revoked() && !ended[l.Token][l.ID] {
			return fmt.Errorf("%v is gone, and Ended is %v", l, x.Ended)
		}
		if err := x.checkHeld(l); err != nil {
			return err
		}
	}
	return nil
}

// checkHeld: how long the lease was held is told, to its end. A second end is of a grant after a withdrawal, to the
// same call and perhaps with the token of the same readers.
func (x decisionCheck) checkHeld(l lock.Lease) error {
	for _, e := range x.Ended {
		end := x.Now
		if e.How == lock.Expired {
			end = l.EndsAt()
		}
		if e.ID != l.ID || e.Token != l.Token {
			continue
		}
		if e.Mode != l.Mode || e.Held != end.Sub(l.AcquiredAt) {
			return fmt.Errorf("%v has ended, and Ended has %+v", l, e)
		}
		return nil
	}
	return nil
}

// checkMeasures: a renewal tells what the lease had left, and a claim for how long it was unclaimed.
func (x decisionCheck) checkMeasures() error {
	_, renew := x.cmd.(lock.Renew)
	if x.Renewed != (renew && x.Err == nil) {
		return fmt.Errorf("Renewed is %v for %T, which ends with %w", x.Renewed, x.cmd, x.Err)
	}
	for _, l := range x.before.Leases {
		for _, o := range x.Locks[0].Leases {
			if o.ID != l.ID || o.Token != l.Token {
				continue
			}
			granted := slices.ContainsFunc(x.Events, func(e lock.Event) bool { return e.Kind == lock.Granted })
			if claimed := l.Unclaimed() && !o.Unclaimed() && !o.Revoked() && !granted; claimed && x.Claimed != x.Now.Sub(l.ClaimDeadline.Add(-lock.ClaimTimeout)) {
				return fmt.Errorf("claimed after %v: %v", x.Claimed, l)
			}
			if x.Renewed && !granted && o.ID == leaseOf(x.Decision).ID && x.Left != l.ExpiresAt.Sub(x.Now) {
				return fmt.Errorf("renewed with %v left: %v", x.Left, l)
			}
		}
	}
	return nil
}

// checkExclusion: the leases are compatible.
func (x decisionCheck) checkExclusion() error {
	s := x.Locks[0]
	capacity := s.Capacity
	if x.ruled && capacity != 0 { // leases from before the rule keep their permits
		granted := slices.ContainsFunc(x.Events, func(e lock.Event) bool { return e.Kind == lock.Granted })
		if out := permitsOut(s.Leases); granted && out > capacity {
			return fmt.Errorf("granted a permit beyond the capacity %d: %d are out", capacity, out)
		}
		capacity = lock.MaxHolders
	}
	for i, l := range s.Leases {
		if !compatible(s.Leases[:i], capacity, lock.Member{Mode: l.Mode, Capacity: capacity, Permits: l.Permits()}) {
			return fmt.Errorf("conflicting leases: %+v", s.Leases)
		}
		for _, o := range s.Leases[:i] {
			// A reader after all readers were revoked has a new token.
			sameToken := l.Mode == lock.Shared && !o.Revoked() && !l.Revoked()
			if o.ID == l.ID || shareSlot(&o, &l) || sameToken && o.Token != l.Token ||
				l.Mode != lock.Shared && o.Token == l.Token {
				return fmt.Errorf("invalid lease IDs, slots or tokens: %+v", s.Leases)
			}
		}
		last := slices.Max(l.Slots.All(l.Slot))
		if (l.Slot == 0) != (l.Mode == lock.Exclusive) || last > lock.MaxHolders || !l.Slots.IsValid(l.Slot) ||
			l.Mode == lock.Permit && last > capacity || l.Mode != lock.Permit && l.Slots != "" {
			return fmt.Errorf("a lease has slot %d: %+v", l.Slot, l)
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

// shareSlot reports whether the leases have a slot in common.
func shareSlot(a, b *lock.Lease) bool {
	return slices.ContainsFunc(a.Slots.All(a.Slot), func(slot int) bool { return b.Slots.Include(b.Slot, slot) })
}

// permitsOut returns how many permits the leases have.
func permitsOut(leases []lock.Lease) (n int) {
	for _, l := range leases {
		n += len(l.Slots.All(l.Slot))
	}
	return n
}

// compatible reports whether what m asks for can be granted beside the leases held. It implements the rules of the modes
// a second time.
func compatible(held []lock.Lease, capacity int, m lock.Member) bool {
	for _, l := range held {
		if l.Mode != m.Mode || m.Mode == lock.Exclusive {
			return false
		}
	}
	switch {
	case len(held) == 0:
		return true
	case m.Mode == lock.Permit:
		return m.Capacity == capacity && permitsOut(held)+max(m.Permits, 1) <= capacity
	}
	return len(held) < lock.MaxHolders
}

// checkPlaces: the places are in order; a lease ID has at most one place, and a lease beside it only if the lease is
// unclaimed.
func (x decisionCheck) checkPlaces() error {
	s := x.Locks[0]
	places := map[lock.LeaseID]bool{}
	for i, w := range s.Queue {
		if places[w.Lease.ID] || i > 0 && w.Place <= s.Queue[i-1].Place {
			return fmt.Errorf("the queue is not in order: %+v", s.Queue)
		}
		places[w.Lease.ID] = true
	}
	for _, l := range s.Leases {
		if l.Unclaimed() != places[l.ID] {
			return fmt.Errorf("a claimed lease has a place, or an unclaimed lease has none: %+v", l)
		}
	}
	return nil
}

// attachedWaiters returns the attached waiters of s without a lease.
func (x decisionCheck) attachedWaiters(s lock.Record) []*lock.Waiter {
	return slices.DeleteFunc(slices.Clone(s.Queue), func(w *lock.Waiter) bool {
		return !attached(*w, x.Now, x.clock, x.self) ||
			slices.ContainsFunc(s.Leases, func(l lock.Lease) bool { return l.ID == w.Lease.ID })
	})
}

// attached reports whether a call waits at now on the lock's time, where clock is the database's clock, which decides
// whether the replica is alive.
func attached(w lock.Waiter, now, clock time.Time, self lock.Replica) bool {
	if w.Replica != self && !clock.Before(w.AliveUntil) {
		return false
	}
	if w.Lease.Mode == lock.Permit && w.Permits > w.Capacity { // a rule has made it less
		return false
	}
	if w.Lease.Session != 0 && !clock.Before(w.Lease.ExpiresAt.Add(w.Lease.Grace)) {
		return false
	}
	w.AliveUntil = w.WaitUntil
	return w.Attached(now, self)
}

// isClosed reports whether the lock is closed by a release.
func (x decisionCheck) isClosed(r lock.Record) bool {
	return r.Closed != nil && x.clock.Before(r.Closed.Until)
}

// checkHeadBlocked: the first attached waiter cannot be granted the lock. While grants are paused, and while the lock is
// closed, no lease is granted, and no waiter is left whose work is done.
func (x decisionCheck) checkHeadBlocked() error {
	s := x.Locks[0]
	if i := slices.IndexFunc(s.Queue, func(w *lock.Waiter) bool { return w.Once }); x.isClosed(s) && i >= 0 {
		return fmt.Errorf("the lock is closed, and for work to be done once there waits %+v", s.Queue[i])
	}
	opened := slices.ContainsFunc(x.Events, func(e lock.Event) bool { return e.Kind == lock.Opened })
	if x.isClosed(s) && len(s.Leases) > 0 {
		return fmt.Errorf("the lock is closed, and has %+v", s.Leases)
	}
	if closed := x.isClosed(x.before) && !opened; x.paused || closed || x.isClosed(s) {
		if i := slices.IndexFunc(x.Events, func(e lock.Event) bool { return e.Kind == lock.Granted }); i >= 0 && (x.paused || closed) {
			return fmt.Errorf("granted while grants are paused: %+v", x.Events[i])
		}
		return nil
	}
	if w := x.attachedWaiters(s); len(w) > 0 && compatible(s.Leases, s.Capacity, w[0].Member()) {
		return fmt.Errorf("the first waiter could be granted the lock: %+v", w[0])
	}
	return nil
}

// checkNoOvertaking: no waiter that was attached before the decision, and still waits, was passed by a grant to a
// later place or a new request.
func (x decisionCheck) checkNoOvertaking() error {
	before := x.before
	before.Leases = nil // include waiters whose grant was withdrawn
	wasAttached := map[lock.Attachment]bool{}
	for _, w := range x.attachedWaiters(before) {
		wasAttached[w.Attachment] = true
	}
	for _, w := range x.attachedWaiters(x.Locks[0]) {
		for _, e := range x.Events {
			if e.Kind == lock.Granted && wasAttached[w.Attachment] && (e.Place == 0 || e.Place > w.Place) {
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
			return fmt.Errorf("revision %d has the event %+v", r, e)
		}
	}
	if x.Locks[0].Revision != r {
		return fmt.Errorf("the lock is at revision %d, the last event at %d", x.Locks[0].Revision, r)
	}
	return nil
}

// checkPromoted: each promoted waiter has a lease, unclaimed if another replica serves it, and each lease that was granted
// from the queue is that of a promoted waiter, or the answer.
func (x decisionCheck) checkPromoted() error {
	for _, w := range x.Promoted {
		if !slices.ContainsFunc(x.Locks[0].Leases, func(l lock.Lease) bool {
			return l.ID == w.Lease.ID && l.Attachment == w.Attachment && l.Unclaimed() == (w.Replica != x.self)
		}) {
			return fmt.Errorf("promoted without a lease: %+v", w)
		}
	}
	for _, l := range x.Locks[0].Leases {
		had := slices.ContainsFunc(x.before.Leases, func(o lock.Lease) bool { return o.ID == l.ID && o.Token == l.Token })
		told := slices.ContainsFunc(x.Promoted, func(w lock.Waiter) bool { return w.Lease.ID == l.ID }) || leaseOf(x.Decision).ID == l.ID
		if l.Place > 0 && !had && !told {
			return fmt.Errorf("a waiter was granted the lock, and its call is not told: %+v", l)
		}
	}
	return nil
}

// checkDue: Due is in the future, or zero if and only if the lock has no queue, and no lease that ends by itself or becomes suspect.
func (x decisionCheck) checkDue() error {
	idle := len(x.Locks[0].Queue) == 0 && !slices.ContainsFunc(x.Locks[0].Leases, func(l lock.Lease) bool {
		return (l.Session == 0 || l.MaxHold > 0) && !l.Suspect
	})
	if x.Due.IsZero() != idle ||
		!idle && !x.Due.After(x.Now) {
		return fmt.Errorf("due at %v, decided at %v", x.Due, x.Now)
	}
	return nil
}
