package verify

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A sessionHistory is everything that was recorded about one session.
type sessionHistory struct {
	extended []*Call       // opened or renewed it
	unknown  bool          // some call may have extended it, and has no answer
	shortest time.Duration // the shortest TTL that such a call asked for, zero for none
	lost     []*Call       // were told that it has ended
	closes   []*Call       // may have closed it

	ttl, grace time.Duration // with which it was opened
}

// sessions returns the sessions that calls were about. A call on a lock may also be told that its session has ended.
func (h History) sessions() map[lock.SessionRef]*sessionHistory {
	all := map[lock.SessionRef]*sessionHistory{}
	for i := range h.Calls {
		c := &h.Calls[i]
		ref := c.session()
		if a, acquires := c.Request.(lock.Acquire); acquires {
			ref = a.SessionID.Ref()
		}
		if ref == 0 {
			continue
		}
		s := all[ref]
		if s == nil {
			s = &sessionHistory{}
			all[ref] = s
		}
		if h.inCells && c.Verb == CloseSession && errors.Is(c.Err, lock.ErrSessionLost) {
			s.closes = append(s.closes, c) // it has ended in one cell, and may have been closed in another
		}
		s.add(c)
	}
	return all
}

func (s *sessionHistory) add(c *Call) {
	if errors.Is(c.Err, lock.ErrSessionLost) {
		s.lost = append(s.lost, c)
		return
	}
	if o, opens := c.Request.(lock.OpenSession); opens {
		s.ttl, s.grace = o.TTL, o.Grace
	}
	switch {
	case c.Verb == CloseSession && mayEnd(c):
		s.closes = append(s.closes, c)
	case c.Verb != OpenSession && c.Verb != RenewSession:
	case c.Outcome() == Done:
		s.extended = append(s.extended, c)
	case c.Outcome() == Unknown:
		s.unknown = true
		if r, _ := c.Request.(lock.RenewSession); r.TTL > 0 {
			s.shortest = min(r.TTL, cmp.Or(s.shortest, r.TTL))
		}
	}
}

// session returns the session of the group's lease, zero if it has none.
func (r *callGroup) session() lock.SessionRef {
	a, _ := r.acquire()
	return a.SessionID.Ref()
}

// withoutSession returns a as the model of a lock decides it: with the TTL and the grace of its session, whose other
// ends the model does not know.
func (t *lockHistory) withoutSession(a lock.Acquire) lock.Acquire {
	if s := t.sessions[a.SessionID.Ref()]; s != nil {
		a.TTL, a.Grace = s.ttl, s.grace
	}
	a.SessionID = lock.SessionID{}
	return a
}

// endOfSession returns when a session that a call has extended ends unless it is extended further, grace included.
func endOfSession(c *Call) time.Time {
	g := c.Response.(lock.SessionGrant)
	return g.ExpiresAt.Add(g.Grace)
}

// endsWithSession checks the leases of sessions: none expires before the end that an answer about its session
// promised, and none is seen after the last end that any answer can have promised, or used once its session was
// reported lost.
func (x *examination) endsWithSession(t *lockHistory, c *Check) {
	for _, l := range t.leases {
		if l.group == nil || l.group.session() == 0 {
			continue
		}
		s := t.sessions[l.group.session()]
		if s == nil {
			continue
		}
		c.Examined++
		t.expiredBeforeSession(l, s, c)
		t.outlivedSession(l, s, x.inCells, c)
		t.usedAfterSession(l, s, c)
	}
}

// expiredBeforeSession checks that the lease did not expire before an end of its session that was promised while the
// lease was held: by an answer, or by an epoch, in which the session has its whole TTL again.
func (t *lockHistory) expiredBeforeSession(l *lease, s *sessionHistory, c *Check) {
	a, _ := l.group.acquire()
	first := l.firstAnswer()
	if l.ended == nil || l.ended.Kind != lock.Expired || first == nil || a.MaxHold > 0 {
		return
	}
	k := t.epochs.of(l.ended)
	for _, by := range s.extended {
		end, promised := s.promisedBy(t.epochs, by, k)
		if before, _ := t.epochs.ofCall(by); t.inCells && before != k {
			continue // as in promisedEnd
		}
		if promised && by.Sent > first.Answered && l.ended.At.Before(end) {
			c.violated(t, fmt.Sprintf("The lease of %q with token %d expired at %s, but its session was extended to %s.",
				l.holder, l.token, clock(l.ended.At), clock(end)), []*Call{first, by}, l.granted, l.ended)
			return
		}
	}
}

// promisedBy returns the end that an answer promises on the clock of the epoch, grace included, false if it promises
// none. A session that was not over when an epoch began has its whole TTL from then on.
func (s *sessionHistory) promisedBy(all epochs, by *Call, k int) (time.Time, bool) {
	first, last := all.ofCall(by)
	switch {
	case first == k && last == k:
		return endOfSession(by), true
	case k == 0 || first >= k:
		return time.Time{}, false
	}
	before, ok := endOfSession(by), true
	if first < k-1 {
		before, ok = s.promisedBy(all, by, k-1)
	}
	e := all[k]
	alive := ok && !e.from.IsZero() && !e.endedBy.IsZero() && before.After(e.endedBy)
	return e.from.Add(s.leastTTL() + s.grace), alive
}

// wholeTTL returns the TTL and the grace of a session that a call has extended.
func wholeTTL(c *Call) time.Duration {
	g := c.Response.(lock.SessionGrant)
	return g.TTL + g.Grace
}

// leastTTL returns the shortest TTL that the session may have had.
func (s *sessionHistory) leastTTL() time.Duration {
	least := s.extended[0].Response.(lock.SessionGrant).TTL
	for _, c := range s.extended {
		least = min(least, c.Response.(lock.SessionGrant).TTL)
	}
	return min(least, cmp.Or(s.shortest, least))
}

// lastEnd returns the latest end of the session on the clock of the epoch, grace included, and the answer that it is
// due to; nil if there is none.
func (s *sessionHistory) lastEnd(all epochs, k int) (last time.Time, by *Call) {
	for _, e := range s.extended {
		first, newest := all.ofCall(e)
		if end := endOfSession(e); first <= k && newest >= k && end.After(last) {
			last, by = end, e
		}
		if end := all[k].by.Add(wholeTTL(e)); k > 0 && first < k && end.After(last) {
			last, by = end, e
		}
	}
	return last, by
}

// outlivedSession checks that no answer shows the lease after the last end of its session. A cell in which the session is
// used for the first time gives it its whole TTL from then on, which is later than what answers about the session say.
func (t *lockHistory) outlivedSession(l *lease, s *sessionHistory, inCells bool, c *Check) {
	if s.unknown || len(s.extended) == 0 {
		return
	}
	for _, call := range t.calls {
		seen, isRead := call.lockRead()
		v, isVerification := call.Response.(lock.Verification)
		at, shown := seen.AsOf, isRead && l.shownIn(seen)
		if isVerification && l.mode == lock.Exclusive {
			at, shown = v.CheckedAt, v.Token == l.token && v.Status == lock.Current
		}
		if !shown {
			continue
		}
		k, newest := t.epochs.ofCall(call)
		last, by := s.lastEnd(t.epochs, k)
		if inCells && by != nil {
			last = last.Add(wholeTTL(by))
		}
		if k == newest && !at.Before(last) {
			c.violated(t, fmt.Sprintf("The lease of %q with token %d was seen at %s, but its session ended at %s at the latest.",
				l.holder, l.token, clock(at), clock(last)), []*Call{by, call}, l.granted, l.ended)
			return
		}
	}
}

// usedAfterSession checks that no call on the lease succeeded that was sent after its session was reported lost. A
// release may: it is repeated.
func (t *lockHistory) usedAfterSession(l *lease, s *sessionHistory, c *Check) {
	for _, lost := range s.lost {
		for _, calls := range [][]*Call{l.acquired, l.renewed} {
			for _, call := range calls {
				if call.Sent > lost.Answered {
					c.violated(t, fmt.Sprintf("The session of the lease of %q with token %d was reported lost, but the lease was used later.",
						l.holder, l.token), []*Call{lost, call}, l.granted, l.ended)
					return
				}
			}
		}
	}
}
