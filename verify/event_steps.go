package verify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// An origin is what is known about the start of a lease.
type origin int

const (
	immediate    origin = iota // answered; the lease starts at the time of its event
	claimed                    // answered; the lease starts when it was claimed
	unknownStart               // not known when its TTL starts
)

// origin returns the origin of the lease, and the answer that shows it.
func (t *lockHistory) origin(l *lease) (origin, lock.Grant) {
	answer := l.firstAnswer()
	if len(l.acquired) > 0 {
		answer = l.acquired[0]
	}
	if answer == nil || !l.answeredIn(t, l.began(t), answer) || l.group.session() != 0 { // the session moves its end
		return unknownStart, lock.Grant{}
	}
	g := grant(answer)
	if l.granted != nil && g.AcquiredAt.After(l.granted.At) && l.granted.Place != 0 {
		return claimed, g
	}
	return immediate, g
}

// command returns the acquire that was granted, with the TTL of the answer.
func (l *lease) command(t *lockHistory, g lock.Grant) lock.Acquire {
	a, ok := l.group.acquire()
	if !ok { // no acquire was recorded: make one up
		m := lock.Member{Mode: l.mode, Capacity: max(t.capacity, 0), Permits: l.slots.Count()}
		a = lock.Acquire{Locks: []lock.Member{m}, Holder: l.holder,
			LeaseID: lock.LeaseID{0xff, byte(l.token >> 8), byte(l.token)}}
	}
	a = withLock(t.withoutSession(a), t.name)
	a.Wait, a.KeepPlace = 0, false
	a.TTL = cmp.Or(a.TTL, g.TTL, time.Hour)
	if m := &a.Locks[0]; m.Mode != lock.Permit {
		m.Capacity, m.Permits = 0, 0
	}
	return a
}

// grantOperation returns the operation of a grant.
func (t *lockHistory) grantOperation(l *lease) *operation {
	b, g := t.origin(l)
	a := l.command(t, g)
	at := g.AcquiredAt
	if l.granted != nil {
		at = l.granted.At
	}
	o := &operation{text: fmt.Sprintf("grant %s to %q with token %d", l.mode, l.holder, l.token)}
	o.endsGrace = func(g lock.Lease) bool { return conflict(g.Mode, l.mode) || l.sharesSlot(g.Slot, g.Slots) }
	if l.granted != nil {
		o.revision = l.granted.Revision
	}
	last := slices.Max(l.slots.All(l.slot))
	o.step = func(s lock.Record) (lock.Record, bool) {
		s.Leases = slices.DeleteFunc(slices.Clone(s.Leases), func(g lock.Lease) bool { // its grace may be over
			return g.Revoked() && endUnknown(g) && g.Slot > last
		})
		if len(s.Leases) > 0 {
			s.Capacity = cmp.Or(s.Capacity, a.Locks[0].Capacity)
		}
		v := viewAt(s, at)
		newest := s.Token
		v.Tokens = func() lock.Token {
			if l.token > newest {
				return l.token
			}
			return 0
		}
		if b == claimed {
			return t.grantToWaiter(v, a, l)
		}
		d := a.Apply(v)
		next := d.Locks[0]
		if d.Err != nil || !l.matches(d.Leases[0]) || !d.Now.Equal(at) {
			return s, false
		}
		i, _ := findLease(next, a.LeaseID)
		next = withLease(next, i, d.Leases[0])
		if l.granted != nil {
			next.Leases[i].Place = l.granted.Place
		}
		if b == unknownStart {
			next.Leases[i].ExpiresAt = unknownEnd()
		}
		return next, true
	}
	return o
}

// matches reports whether g has the token and the slots of the lease.
func (l *lease) matches(g lock.Lease) bool {
	return g.Token == l.token && g.Slot == l.slot && g.Slots == l.slots
}

// remoteCall is the attachment of a call that waits at another replica.
const remoteCall lock.Attachment = 1

// grantToWaiter grants the lock to a call that waits at another replica.
func (t *lockHistory) grantToWaiter(v lock.View, a lock.Acquire, l *lease) (lock.Record, bool) {
	s, later, m := v.Locks[0], v.Now.Add(time.Hour), a.Locks[0]
	w := lock.Waiter{
		Place: l.granted.Place, Capacity: m.Capacity, Permits: m.Permits, Attachment: remoteCall, Replica: otherReplica, WaitUntil: later,
		AliveUntil: later, KeptUntil: later,
		Lease: lock.Lease{
			ID: a.LeaseID, Name: m.Name, Mode: m.Mode, Holder: a.Holder, TTL: a.TTL, Grace: a.Grace,
			MaxHold: a.MaxHold, Stays: a.Stays,
		},
	}
	s.Queue = []*lock.Waiter{&w}
	v.Locks = []lock.Record{s}
	d := lock.Sweep{Locks: []string{t.name}}.Apply(v)
	next := d.Locks[0]
	next.Queue = nil
	i, ok := findLease(next, a.LeaseID)
	return next, ok && l.matches(next.Leases[i]) && d.Now.Equal(v.Now)
}

// claimOperation returns the operation by which a waiting call claims its grant.
func (t *lockHistory) claimOperation(l *lease, g lock.Grant) *operation {
	return &operation{
		text: fmt.Sprintf("claim token %d", l.token), before: -1,
		step: func(s lock.Record) (lock.Record, bool) {
			d := lock.Claim{Locks: []string{t.name}, LeaseID: l.group.id, Attachment: remoteCall}.Apply(viewAt(s, g.AcquiredAt))
			i, ok := findLease(s, l.group.id)
			if !ok || d.Err != nil || d.Queued || !l.matches(d.Leases[0]) || !d.Leases[0].AcquiredAt.Equal(g.AcquiredAt) {
				return s, false
			}
			return withLease(s, i, d.Leases[0]), true
		},
	}
}

// expiryOperation returns the operation by which time ends the leases of consecutive events with the
// same timestamp, or makes them suspect.
func (t *lockHistory) expiryOperation(due []timedEvent) *operation {
	last, ended := due[len(due)-1].event, endsAmong(due)
	o := &operation{revision: last.Revision}
	for i, l := range due {
		if i > 0 {
			o.text += ", "
		}
		o.text += fmt.Sprintf("%s: token %d", l.event.Kind, l.token)
	}
	o.step = func(s lock.Record) (lock.Record, bool) {
		if slices.ContainsFunc(ended, func(l *lease) bool { return l.renewalPending(t, s) }) {
			return s, false
		}
		past := s
		past.Leases = slices.Clone(s.Leases)
		for i, l := range past.Leases {
			n := slices.IndexFunc(due, func(e timedEvent) bool { return e.matches(l) })
			if n < 0 || !endUnknown(l) {
				continue
			}
			past.Leases[i].ExpiresAt, past.Leases[i].Grace, past.Leases[i].Suspect = last.At, 0, false
			if due[n].event.Kind == lock.Withdrawn { // a grant that was not claimed ends, also of a lease that stays
				past.Leases[i].Stays = false
			}
		}
		d := lock.Sweep{Locks: []string{t.name}}.Apply(viewAt(past, last.At))
		if len(d.Events) != len(due) || !d.Now.Equal(last.At) {
			return s, false
		}
		for _, e := range d.Events {
			if !slices.ContainsFunc(due, func(l timedEvent) bool {
				return l.token == e.Token && l.slot == e.Slot && (l.event.Kind == lock.Suspected) == (e.Kind == lock.Suspected)
			}) {
				return s, false
			}
		}
		return withUnknownEnds(d.Locks[0], s), true
	}
	return o
}

// withUnknownEnds returns s with the ends of those leases unknown whose ends were unknown before.
func withUnknownEnds(s, before lock.Record) lock.Record {
	for _, l := range before.Leases {
		i := slices.IndexFunc(s.Leases, func(o lock.Lease) bool { return o.ID == l.ID && o.Token == l.Token && o.Slot == l.Slot })
		if endUnknown(l) && i >= 0 {
			left := s.Leases[i]
			left.ExpiresAt, left.Grace = l.ExpiresAt, l.Grace
			s = withLease(s, i, left)
		}
	}
	return s
}

// endOperation returns the operation that ends the lease: a release, a revocation, or the withdrawal of
// a grant that no client knows of.
func (t *lockHistory) endOperation(l *lease) *operation {
	e := l.ended
	o := &operation{text: fmt.Sprintf("%s: token %d of %q", e.Kind, l.token, l.holder), revision: e.Revision}
	o.step = func(s lock.Record) (lock.Record, bool) {
		i := slices.IndexFunc(s.Leases, func(g lock.Lease) bool { return l.matches(g) && !g.Revoked() })
		if i < 0 || l.renewalPending(t, s) {
			return s, false
		}
		var c lock.Command
		switch e.Kind {
		case lock.Released:
			c = lock.Release{Locks: []string{t.name}, LeaseID: s.Leases[i].ID}
		case lock.Revoked:
			skipGrace, known := t.revokedSkippingGrace(l)
			open := endUnknown(s.Leases[i]) // it may be in its grace, or its grant had no answer
			next, ok := t.revocation(l, skipGrace, s)
			if j := slices.IndexFunc(next.Leases, l.matches); ok && j >= 0 && (open || !known) {
				left := next.Leases[j]
				left.ExpiresAt = unknownEnd()
				next = withLease(next, j, left)
			}
			return next, ok
		default:
			c = lock.Leave{Locks: []string{t.name}, LeaseID: s.Leases[i].ID, Attachment: s.Leases[i].Attachment,
				Disconnected: true}
		}
		d := c.Apply(viewAt(s, e.At))
		return d.Locks[0], l.isEndedBy(d)
	}
	return o
}

// revocation returns s after the revocation in the lease's end event.
func (t *lockHistory) revocation(l *lease, skipGrace bool, s lock.Record) (lock.Record, bool) {
	r := lock.Revoke{Name: t.name, Token: l.token, Slot: &l.slot, Reason: l.ended.Reason, SkipGrace: skipGrace}
	d := r.Apply(viewAt(s, l.ended.At))
	return d.Locks[0], l.isEndedBy(d)
}

// isEndedBy reports whether the decision ends the lease as its event says.
func (l *lease) isEndedBy(d lock.Decision) bool {
	return d.Err == nil && len(d.Events) == 1 && d.Events[0].Kind == l.ended.Kind && d.Now.Equal(l.ended.At)
}

// skipGraceOperation returns the operation by which an operator skips the rest of the grace of a
// revoked lease.
func (t *lockHistory) skipGraceOperation(l *lease) *operation {
	e := l.skipped
	o := &operation{text: fmt.Sprintf("skip the grace of token %d of %q", l.token, l.holder), revision: e.Revision,
		endsGrace: l.matches}
	o.step = func(s lock.Record) (lock.Record, bool) {
		if s.ChangedAt = e.At; !slices.ContainsFunc(s.Leases, l.matches) {
			return s, true // it is in state.graces
		}
		d := lock.Revoke{Name: t.name, Token: l.token, Slot: &l.slot, Reason: e.Reason,
			SkipGrace: true}.Apply(viewAt(s, e.At))
		return d.Locks[0], d.Err == nil && len(d.Events) == 1
	}
	return o
}

// renewalPending reports whether a renewal must still be applied: the end of the lease is before the
// end that was promised.
func (l *lease) renewalPending(t *lockHistory, s lock.Record) bool {
	end, by := l.answeredEnd(t, t.epochs.of(l.ended))
	return by != nil && slices.ContainsFunc(s.Leases, func(g lock.Lease) bool {
		return l.matches(g) && !endUnknown(g) && g.ExpiresAt.Add(g.Grace).Before(end)
	})
}
