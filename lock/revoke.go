package lock

import (
	"cmp"
	"slices"
	"time"
)

// Revoke ends leases on behalf of an operator. It selects them by Token, so that it cannot end a lease that was
// granted after the operator looked. The errors of the holders and the events contain the Reason. Shared leases that
// overlap have one token and are revoked together, unless Slot selects one. Several permits of one lease are revoked
// together, whichever of their slots is given. AcquiredAt distinguishes a later lease
// with the same token and slot.
//
// A lease of a set is revoked together with the others of the set. That needs a decision on all of their locks: the
// decision's FollowUp makes it.
//
// The lease ends at once. Conflicting grants wait until its grace is over, which starts at the revocation, or at the
// expiry if that was earlier. SkipGrace skips the grace; it also ends the grace of a lease that is revoked already. A
// grant that no client knows of has no grace.
//
// If a Release has closed the lock, a Revoke of the token of the lease that was released opens it, so that the work can
// be done again. Other locks of its set stay closed.
type Revoke struct {
	Name       string
	Token      Token
	Slot       *int      // nil: any
	AcquiredAt time.Time // of the lease, as in its LeaseInfo; zero: any
	Reason     string    // for people: 1 to MaxReasonLength characters
	SkipGrace  bool      // end the grace at once

	// Of a Decision's FollowUp, never of a request: the leases of the set that is left, which includes Name, are revoked; and
	// whether leases have been revoked before.
	Set   []string
	Began bool
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r Revoke) Resolve() (Revoke, error) {
	r.Set, r.Began = nil, false
	return r, cmp.Or(
		CheckName(r.Name),
		checkToken(r.Token),
		checkSlot(r.Slot),
		checkText("reason", r.Reason, 1, MaxReasonLength),
	)
}

// Names returns the lock's name, or those of the Set, in order.
func (r Revoke) Names() []string { return homeOrSet(r.Name, r.Set) }

// homeOrSet returns the locks of a command on the lock home, or of its FollowUp on a set which includes that lock.
func homeOrSet(home string, set []string) []string {
	if len(set) > 0 {
		return set
	}
	return []string{home}
}

// Traits returns those of a command whose answer is the lock.
func (r Revoke) Traits() Traits { return Traits{ShowsQueue: true} }

// In returns r: its locks are those of leases, which know their sets.
func (r Revoke) In(*Policy) (Command, error) { return r, nil }

// Apply ends the selected leases, or refuses with ErrTokenMismatch. A repeated Revoke succeeds until the grace is
// over. After that it succeeds until the next grant, if no other lease has the token; then also for another slot, whose
// lease may have ended in another way, since a lock knows its last end only.
func (r Revoke) Apply(v View) Decision {
	d := begin(v, nil)
	d.applyTime()
	home, selected := d.lock(r.Name), r.Began
	var rest []string
	for _, l := range home.record.Leases {
		switch {
		case !r.matches(l):
		case l.Set == nil:
			home.revokeAlone(l, r)
			selected = true
		case slices.Equal(l.Set, r.Set) && !home.isSpent():
			d.revokeSet(l, r)
			selected = true
		case !l.Revoked() || r.SkipGrace:
			rest = l.Set
		default: // it was revoked before, and its grace is not over
			selected = true
		}
	}
	if !selected && rest == nil && home.isDone() && home.record.Token == r.Token && (r.Slot == nil || *r.Slot == 0) {
		home.open(r)
		selected = true
	}
	d.promote()
	if rest != nil {
		out := d.finish(nil)
		r.Set, r.Began = rest, selected
		out.FollowUp = r
		return out
	}
	if selected || home.record.Token == r.Token && home.record.LastEnd == Revoked {
		return d.finish(nil)
	}
	return d.finish(errTokenMismatch(home.record, r.Token))
}

// open opens the lock, which a Release has closed.
func (s *lockState) open(r Revoke) {
	done := Lease{Mode: Exclusive, Holder: s.record.Closed.Holder, Token: s.record.Token}
	s.record.Closed, s.record.LastEnd, s.madeRoom = nil, Revoked, true // so a repeated Revoke succeeds
	s.emit(Event{Kind: Opened, Reason: r.Reason, Caller: s.view.Caller}, done)
}

// revokeSet ends the lease at each lock of its set.
func (d *decider) revokeSet(l Lease, r Revoke) {
	for _, s := range d.locks {
		if i := s.index(l.ID); i >= 0 && slices.Equal(s.record.Leases[i].Set, l.Set) {
			s.revokeAlone(s.record.Leases[i], r)
		}
	}
}

// revokeAlone revokes the lease, whose session goes on without it. A lease that is revoked already is of no session.
func (s *lockState) revokeAlone(l Lease, r Revoke) {
	if l.Session != 0 && !l.Mode.IsIntention() {
		s.losses = append(s.losses, SessionLoss{s.record.Name, l.Session})
	}
	s.revoke(l, r)
}

// revoke ends the lease, and its grace if r skips it.
func (s *lockState) revoke(l Lease, r Revoke) {
	revoked := l.revokedAt(s.now)
	e := Event{Kind: Revoked, Reason: r.Reason, Caller: s.view.Caller, Session: l.Session}
	switch {
	case l.Revoked() && r.SkipGrace:
		s.removeLease(l)
		s.emit(e, l)
	case l.Revoked():
	case r.SkipGrace || s.isUndelivered(l) || !s.now.Before(revoked.EndsAt()):
		s.endLease(l, e)
	default:
		s.replaceLease(revoked)
		s.noteEnd(revoked, Revoked)
		e.Ref = RefOf(s.record.Name, l.ID)
		s.emit(e, revoked)
	}
}

// matches reports whether r selects the lease.
func (r Revoke) matches(l Lease) bool {
	return l.hasToken(r.Token) && l.hasSlot(r.Slot) &&
		(r.AcquiredAt.IsZero() || r.AcquiredAt.Equal(l.AcquiredAt))
}

// EndSession ends the leases that a session has of the lock Name, and removes its waiters, after the session has ended
// in the way How. It is never refused.
type EndSession struct {
	Name      string
	Ref       SessionRef
	How       Kind // as Session.Ended
	Reason    string
	By        Caller // who has ended the session
	SkipGrace bool
	Set       []string // of a Decision's FollowUp: the leases and places of this set, which includes Name, are ended
}

// Names returns the lock's name, or those of the Set, in order.
func (e EndSession) Names() []string { return homeOrSet(e.Name, e.Set) }

// Traits returns those of a command about no lease in particular.
func (e EndSession) Traits() Traits { return Traits{} }

// In returns e: its locks are those of leases, which know their sets.
func (e EndSession) In(*Policy) (Command, error) { return e, nil }

// Apply ends the session's leases and places of the lock. Those of an expired session end by time alone. Those of a
// set are ended together with the rest of the set.
func (e EndSession) Apply(v View) Decision {
	v.Caller = e.By
	d := begin(v, nil)
	d.applyTime()
	if e.How == Expired {
		return d.finish(nil)
	}
	home := d.lock(e.Name)
	for _, l := range home.record.Leases {
		if e.ends(&l) && !home.isSpent() {
			d.endLeaseOf(e, l.ID)
		}
	}
	for _, w := range home.record.Queue {
		if e.ends(&w.Lease) && len(home.events) < home.budget() {
			d.endWaiterOf(e, w.Lease.ID)
		}
	}
	d.promote()
	out := d.finish(nil)
	left := func(l *Lease) {
		if l.Session == e.Ref && l.Set != nil {
			rest := e
			rest.Set = l.Set
			out.FollowUp = rest
		}
	}
	for i := range home.record.Leases {
		left(&home.record.Leases[i])
	}
	for _, w := range home.record.Queue {
		left(&w.Lease)
	}
	return out
}

// ends reports whether e ends the lease or the waiter with this lease: one of the session, alone or of the set.
func (e EndSession) ends(l *Lease) bool { return l.Session == e.Ref && slices.Equal(l.Set, e.Set) }

// endLeaseOf ends the lease of the session at each lock.
func (d *decider) endLeaseOf(e EndSession, id LeaseID) {
	for _, s := range d.locks {
		l, has := s.lease(id)
		if !has || !e.ends(&l) {
			continue
		}
		if s.isUndelivered(l) {
			s.ousted = append(s.ousted, Waiter{Place: l.Place, Lease: l, Attachment: l.Attachment})
		}
		if e.How == Revoked {
			s.revoke(l, Revoke{Reason: e.Reason, SkipGrace: e.SkipGrace})
		} else {
			s.endLease(l, Event{Kind: Released, Reason: reasonSessionClosed, Caller: s.view.Caller})
		}
	}
}

// endWaiterOf removes the waiter of the session from each queue.
func (d *decider) endWaiterOf(e EndSession, id LeaseID) {
	reason := reasonSessionClosed
	if e.How == Revoked {
		reason = reasonSessionRevoked
	}
	for _, s := range d.locks {
		if w, waits := s.waiter(id); waits && e.ends(&w.Lease) {
			s.dequeue(w, reason)
			s.ousted = append(s.ousted, w)
		}
	}
}
