package lock

import (
	"cmp"
	"slices"
	"time"
)

// A decider applies one command to its locks.
//
// The time of a lock does not run backwards if the database's clock is set back. Then the locks of a set may have
// different times. Each lock uses its own time, so no lock ends leases early because another lock is ahead. Grants
// and renewals begin at the latest of these times, so the leases of a set begin and end together.
type decider struct {
	basis
	locks []*lockState // in the order of the View: one at least
}

// begin returns the decider of a command on the View's locks, which has changed nothing yet. asked are those that the
// request names, if the others are ancestors of them; otherwise nil.
func begin(v View, asked []string) *decider {
	d := &decider{basis: basis{view: v, begin: v.Now}, locks: make([]*lockState, len(v.Locks))}
	states := make([]lockState, len(v.Locks))
	for i := range states {
		now := v.Now
		if at := v.Locks[i].ChangedAt; now.Before(at) {
			now = at
		}
		if d.begin.Before(now) {
			d.begin = now
		}
		above := asked != nil && !slices.Contains(asked, v.Locks[i].Name)
		states[i] = lockState{basis: &d.basis, now: now, record: v.Locks[i], above: above}
		states[i].freezes = v.Policy.freezesOf(v.Locks[i].Name, v.Now)
		if states[i].rule = v.Policy.RuleOf(v.Locks[i].Name); states[i].rule != nil {
			states[i].record = states[i].rule.withCapacity(v.Locks[i])
		}
		d.locks[i] = &states[i]
	}
	return d
}

// applyTime makes the changes that time alone brings: it ends leases, withdraws unclaimed grants, removes lapsed
// places and promotes waiters. Every rule begins with it, so that it decides on the locks as they are now.
func (d *decider) applyTime() {
	for _, s := range d.locks {
		s.endDue()
	}
	d.promote()
}

// promote grants each lock to the waiters that are next and fit, see [lockState.promoteInTurn]. A set is granted when its
// waiters are next and fit at all of its locks. Until then it holds none of them, and at each of them the waiters
// behind it wait.
//
// A set joins all of its queues in one decision, so any two sets have the same order at each lock that they share.
// Hence sets never wait for each other in a circle.
func (d *decider) promote() {
	for _, s := range d.locks {
		if s.isDone() {
			d.dismissDone(s)
		}
	}
	for _, s := range d.locks {
		s.promoteInTurn()
	}
	for len(d.locks) > 1 && d.grantReady() {
	}
}

// dismissDone removes the waiters whose work is done: those of Acquire.Once for the lock, which is closed.
func (d *decider) dismissDone(s *lockState) {
	for _, w := range s.record.Queue {
		if w.needsOnly(s) && d.hasAll(w.Lease.Set) && len(s.events) < s.budget() {
			if w.Attachment != 0 {
				s.ousted = append(s.ousted, *w)
			}
			d.removeWaiters(w.Lease.ID, reasonAlreadyDone)
		}
	}
}

// needsOnly reports whether the waiter waits for the work of this lock that needs to be done only once.
func (w *Waiter) needsOnly(s *lockState) bool {
	return w.Once && w.Lease.Name == s.record.Name && !w.Lease.Mode.IsIntention()
}

// isDone reports whether one of the locks that were asked for is closed by a Release.
func (d *decider) isDone() bool {
	return slices.ContainsFunc(d.locks, func(s *lockState) bool { return !s.above && s.isDone() })
}

// grantReady grants one set that is ready at all of its locks, and returns true; or false if there is none.
func (d *decider) grantReady() bool {
	for _, s := range d.locks {
		for _, w := range s.ready {
			if set := d.readyFor(&w.Lease); set != nil {
				if s.deferred = d.hasDrawnAll(); s.deferred {
					return false
				}
				d.grantWaiters(set, &w.Lease)
				return true
			}
		}
	}
	return false
}

// readyFor returns the locks of the set of the waiter's lease l, nil if it is not ready at all of them.
func (d *decider) readyFor(l *Lease) (set []*lockState) {
	if len(l.Set) > len(d.locks) {
		return nil
	}
	for _, s := range d.locks {
		if s.readyWaiter(l) != nil {
			set = append(set, s)
		}
	}
	if len(set) < len(l.Set) {
		return nil
	}
	return set
}

// grantWaiters grants the locks of a set to its waiters, which are ready and have the lease l.
func (d *decider) grantWaiters(set []*lockState, l *Lease) {
	waiters, modes := make([]Waiter, len(set)), make([]Mode, len(set))
	for i, s := range set {
		waiters[i] = *s.readyWaiter(l)
		modes[i] = waiters[i].Lease.Mode
	}
	d.grantEach(set, modes, func(i int, token Token) Token {
		s := set[i]
		w, stays := s.grantWaiter(waiters[i], token)
		if stays {
			s.replaceWaiter(*w)
		} else {
			s.removeWaiter(w.Lease.ID)
		}
		s.madeRoom = true
		granted, _ := s.lease(w.Lease.ID)
		return granted.Token
	})
	for _, s := range set {
		s.promoteInTurn()
	}
}

// grantEach grants a lease at each lock, in these modes. grant gets the token for it, zero to draw one, and returns the
// token that the lease has. Intentions come last, since they have the greatest token of what they stand for.
func (d *decider) grantEach(locks []*lockState, modes []Mode, grant func(i int, token Token) Token) {
	token := Token(0)
	if len(locks) > 1 {
		token = d.drawFor(locks, modes)
	}
	newest := token
	for _, i := range intentionsLast(modes) {
		give := token
		if modes[i].IsIntention() {
			give = newest
		}
		newest = max(newest, grant(i, give))
	}
}

// intentionsLast returns the indexes of the modes, those of intentions last: an intention has the token of what it
// stands for.
func intentionsLast(modes []Mode) []int {
	order := make([]int, 0, len(modes))
	for _, last := range []bool{false, true} {
		for i, m := range modes {
			if m.IsIntention() == last {
				order = append(order, i)
			}
		}
	}
	return order
}

// drawFor returns one token for all leases of a set, of these modes. It is greater than all tokens of its locks. It is
// zero if each lease is shared and joins others, whose tokens it gets.
func (d *decider) drawFor(locks []*lockState, modes []Mode) Token {
	for i, s := range locks {
		if _, joins := s.record.firstReader(); !modes[i].IsIntention() && (!joins || modes[i] != Shared) {
			return d.drawToken()
		}
	}
	return 0
}

// lock returns the state of the lock.
func (d *decider) lock(name string) *lockState {
	return d.locks[slices.IndexFunc(d.locks, func(s *lockState) bool { return s.record.Name == name })]
}

// leases returns the leases with the ID. all reports that each of the locks has one.
func (d *decider) leases(id LeaseID) (found []Lease, all bool) {
	for _, s := range d.locks {
		if l, ok := s.lease(id); ok {
			found = append(found, l)
		}
	}
	return found, len(found) == len(d.locks)
}

// waiters returns the waiters with the ID. all reports that each of the locks has one.
func (d *decider) waiters(id LeaseID) (found []Waiter, all bool) {
	for _, s := range d.locks {
		if w, ok := s.waiter(id); ok {
			found = append(found, w)
		}
	}
	return found, len(found) == len(d.locks)
}

// hasEnded reports whether the lease has ended at one of the locks.
func (d *decider) hasEnded(id LeaseID) bool {
	return slices.ContainsFunc(d.locks, func(s *lockState) bool { _, ended := s.endOf(id); return ended })
}

// session returns the session of a call, false if there is none.
func (d *decider) session(id SessionID) (Session, bool) {
	s, known := d.view.Sessions[id.Ref()]
	return s, known
}

// checkSession returns the refusal of a call with the session_id, or nil if it has none or can use it.
func (d *decider) checkSession(id SessionID) error {
	if id == (SessionID{}) {
		return nil
	}
	s, known := d.session(id)
	if !known || s.Cells < 0 {
		return NoSession()
	}
	return s.usable(id, d.view.Now)
}

// set returns the names of the locks, as in Lease.Set.
func (d *decider) set() []string {
	if len(d.locks) == 1 {
		return nil
	}
	return d.names()
}

// names returns the names of the locks.
func (d *decider) names() []string {
	names := make([]string, len(d.locks))
	for i, s := range d.locks {
		names[i] = s.record.Name
	}
	return names
}

// isPast reports whether the lease or the place has ended at each lock that the request names. An intention with its ID
// is that of a lease of another lock, for which a client has used the ID again.
func (d *decider) isPast(id LeaseID) bool {
	return !slices.ContainsFunc(d.locks, func(s *lockState) bool {
		if s.above {
			return false
		}
		if l, has := s.leaseOrPlace(id); has && !l.Mode.IsIntention() {
			return true
		}
		_, past := s.lastEvent(id)
		return !past
	})
}

// checkSet refuses a call that does not name exactly the locks that were acquired together.
func (d *decider) checkSet(id LeaseID) error {
	set, asked := d.set(), d.asked()
	for _, s := range d.locks {
		if l, has := s.leaseOrPlace(id); has && (!slices.Equal(l.Set, set) || !slices.Equal(l.Requested(), asked)) {
			return errOtherSet(l.Requested(), asked)
		}
	}
	return nil
}

// asked returns the names of the locks that the request names.
func (d *decider) asked() []string {
	names := make([]string, 0, len(d.locks))
	for _, s := range d.locks {
		if !s.above {
			names = append(names, s.record.Name)
		}
	}
	return names
}

// removeWaiters removes the waiters with the LeaseID, and returns how many there were. The caller then promotes.
func (d *decider) removeWaiters(id LeaseID, reason string) (n int) {
	for _, s := range d.locks {
		if w, ok := s.waiter(id); ok {
			s.dequeue(w, reason)
			n++
		}
	}
	return n
}

// claim assigns the leases to the call, see [lockState.assign].
func (d *decider) claim(leases []Lease, by Attachment) []Lease {
	for i, s := range d.locks {
		leases[i] = s.assign(leases[i], by)
	}
	return leases
}

// promoteNow attaches the waiters of a call, promotes, and returns its leases if it was granted the locks. Otherwise
// they stay in the queues with a wait that has almost ended; the caller must replace or remove them.
func (d *decider) promoteNow(waiters []Waiter) ([]Lease, bool) {
	for i, s := range d.locks {
		w := waiters[i]
		w.Attachment, w.Replica, w.WaitUntil = cmp.Or(w.Attachment, duringDecision), s.view.Self, s.now.Add(1)
		s.replaceWaiter(w)
	}
	d.promote()
	return d.leases(waiters[0].Lease.ID)
}

// duringDecision is the attachment of a call that does not wait, for the time of its own decision.
const duringDecision Attachment = -1

// endWait ends the wait of a call, whose places are those of the waiters, and returns its refusal. A call that asks for more
// permits than a rule allows by now keeps no place.
func (d *decider) endWait(waiters []Waiter, keep bool) error {
	members, kept := make([]Member, len(d.locks)), time.Duration(0)
	var tooMany error
	for i := range waiters {
		members[i] = waiters[i].Member()
		tooMany = cmp.Or(tooMany, checkPermits(members[i]))
	}
	for i, s := range d.locks {
		w := waiters[i]
		if keep && tooMany == nil {
			kept = s.detach(w)
		} else {
			s.dequeue(w, reasonWaitEnded)
		}
	}
	d.promote()
	if tooMany != nil {
		return tooMany
	}
	return errWaitEnded(d.locks, members, waiters[0].Lease.ID, kept)
}

// finish returns the decision: a refusal unless err is nil.
func (d *decider) finish(err error) Decision {
	s := d.locks[0]
	out := Decision{
		Now: d.begin, Changed: s.changed, Events: s.events, Ended: s.ended, Err: err, SessionLosses: s.losses, Promoted: s.promoted, Ousted: s.ousted,
		Claimed: s.claimed, Due: s.nextDue(), Locks: make([]Record, len(d.locks)),
	}
	for i, s := range d.locks {
		if out.Locks[i] = s.record; i > 0 {
			out.include(s)
		}
		out.ReadySets = append(out.ReadySets, d.readyElsewhere(i)...)
	}
	return out
}

// finishWaiting returns the decision of a call that waits, or still waits.
func (d *decider) finishWaiting() Decision {
	out := d.finish(nil)
	out.Queued = true
	return out
}

// finishWithLeases returns a decision that grants the leases, one of each lock.
func (d *decider) finishWithLeases(leases []Lease, replay bool) Decision {
	for i, s := range d.locks {
		s.removePromoted(leases[i].ID)
	}
	out := d.finish(nil)
	out.Replayed = replay
	out.Leases = slices.DeleteFunc(leases, func(l Lease) bool { return l.Mode.IsIntention() }) // no request names these
	return out
}

// readyElsewhere returns the sets that are ready at the i-th lock, and need others to be granted. In a tree there may
// be many, most of which were ready before: these are left out unless their turn may have come by time.
func (d *decider) readyElsewhere(i int) (sets [][]string) {
	s := d.locks[i]
	if s.isDone() { // those of its waiters that dismissDone could not remove
		for _, w := range s.record.Queue {
			if w.needsOnly(s) && !d.hasAll(w.Lease.Set) {
				sets = append(sets, w.Lease.Set)
			}
		}
	}
	if !s.madeRoom {
		return sets
	}
	var before []*Waiter
	if !s.timePassed && slices.ContainsFunc(s.ready, func(w *Waiter) bool { return w.Lease.Below != nil }) {
		before = s.readyBefore()
	}
	for _, w := range s.ready {
		was := slices.ContainsFunc(before, func(o *Waiter) bool { return o.Place == w.Place })
		if !was && !d.hasAll(w.Lease.Set) {
			sets = append(sets, w.Lease.Set)
		}
	}
	return sets
}

// hasAll reports whether the command has each lock of the set.
func (d *decider) hasAll(set []string) bool {
	return len(d.locks) >= len(set) && !slices.ContainsFunc(set, func(name string) bool {
		return !slices.ContainsFunc(d.locks, func(s *lockState) bool { return s.record.Name == name })
	})
}

// include adds what was decided on another lock. A waiter of a set is promoted or ousted once, not at each lock.
func (out *Decision) include(s *lockState) {
	out.Changed = out.Changed || s.changed
	out.Events, out.Ended = append(out.Events, s.events...), append(out.Ended, s.ended...)
	out.SessionLosses = append(out.SessionLosses, s.losses...)
	for _, w := range s.promoted {
		at := slices.IndexFunc(out.Promoted, func(o Waiter) bool { return o.isSameCall(w) })
		switch {
		case at < 0:
			out.Promoted = append(out.Promoted, w)
		case out.Promoted[at].Lease.Mode.IsIntention():
			out.Promoted[at] = w
		}
	}
	for _, w := range s.ousted {
		if !slices.ContainsFunc(out.Ousted, func(o Waiter) bool { return o.isSameCall(w) }) {
			out.Ousted = append(out.Ousted, w)
		}
	}
	if due := s.nextDue(); out.Due.IsZero() || !due.IsZero() && due.Before(out.Due) {
		out.Due = due
	}
}

// isSameCall reports whether w and o are waiters of one call for a set.
func (w Waiter) isSameCall(o Waiter) bool {
	return w.Lease.ID == o.Lease.ID && w.Attachment == o.Attachment && w.Lease.Set != nil && slices.Equal(w.Lease.Set, o.Lease.Set)
}

// A Sweep records the changes of its locks that need no request: it ends expired leases, withdraws unclaimed grants,
// removes lapsed places and promotes waiters. Every other command does the same first, so a Sweep only makes these
// changes happen on time. Of sets it promotes those all of whose locks it has.
type Sweep struct {
	Locks []string // one or more, without duplicates
}

// Names returns the locks.
func (s Sweep) Names() []string { return s.Locks }

// Traits returns the traits of a command without a caller.
func (s Sweep) Traits() Traits { return Traits{NoAnswer: true} }

// In returns s: its locks are those of leases, which know their sets.
func (s Sweep) In(*Policy) (Command, error) { return s, nil }

// Apply records what time has changed.
func (s Sweep) Apply(v View) Decision {
	d := begin(v, nil)
	d.applyTime()
	for _, s := range d.locks {
		s.madeRoom = true // by time, for all that is known: the end of a pause or of another call's wait leaves no trace
		s.timePassed = len(d.locks) == 1
	}
	return d.finish(nil)
}
