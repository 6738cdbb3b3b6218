package verify

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// agrees checks that each answer is confirmed by events, and that each event has a call that may
// have caused it.
func (x *examination) agrees(t *lockHistory, c *Check) {
	for _, l := range t.leases {
		t.grantAgrees(l, c)
		t.endAgrees(l, c)
	}
	for _, call := range t.calls {
		t.callAgrees(call, c)
	}
	t.openingsAgree(c)
	t.queueAgrees(c)
	t.staleAgree(x.refusals(), x.outages, c)
}

// grantAgrees compares a lease with the acquires that requested it.
func (t *lockHistory) grantAgrees(l *lease, c *Check) {
	c.Examined++
	switch {
	case l.granted == nil:
		c.violated(t, fmt.Sprintf(
			"%q was granted the lock with token %d in slot %d, but there is no event of the grant: it was lost.",
			l.holder, l.token, l.slot), []*Call{l.firstAnswer()})
		return
	case l.group == nil:
		c.violated(t, fmt.Sprintf("%q was granted the lock with token %d, but no call requested it.", l.holder,
			l.token), nil, l.granted)
		return
	}
	if a, _ := l.group.acquire(); a.Locks[0].Mode != l.mode || a.Holder != l.holder {
		c.violated(t, fmt.Sprintf("%q was granted the lock as %s, but the request was for %s by %q.", l.holder, l.mode,
			a.Locks[0].Mode, a.Holder), l.group.acquires, l.granted)
	}
	if l.ended != nil && l.ended.Kind == lock.Withdrawn {
		if answer := l.firstAnswer(); answer != nil {
			c.violated(t,
				fmt.Sprintf("The grant with token %d was withdrawn as unclaimed, but %q had been told of it.", l.token,
					l.holder),
				[]*Call{answer}, l.granted, l.ended)
		}
		return
	}
	if !slices.ContainsFunc(l.group.acquires, mayGrant) {
		c.violated(t, fmt.Sprintf("%q was granted the lock with token %d, but every answer said that it was not.",
			l.holder, l.token), l.group.acquires, l.granted)
	}
	for _, answer := range l.acquired {
		t.instantAgrees(l, answer, c)
	}
}

// mayGrant reports whether the call may have caused a grant. A call that waits may have, whatever its
// answer: it may have kept its place for a later call, or been cut off before the grant could be withdrawn.
func mayGrant(call *Call) bool {
	a := call.Request.(lock.Acquire)
	switch call.Outcome() {
	case Done, Unknown:
		return true
	case NotDone:
		return a.Wait > 0 || a.KeepPlace
	}
	if errors.Is(call.Err, lock.ErrSessionLost) { // which may have ended between the grant and the answer
		return a.Wait > 0 || a.KeepPlace
	}
	return errors.Is(call.Err, lock.ErrLeaseLost) // it held the lock and lost it
}

// instantAgrees compares the time of a grant in an answer with that of its event. A grant to a waiter
// may begin when it is claimed, a while after the event.
func (t *lockHistory) instantAgrees(l *lease, answer *Call, c *Check) {
	at, event := grant(answer).AcquiredAt, l.granted.At
	ok := at.Equal(event) || l.granted.Place != 0 && at.After(event) && !at.After(event.Add(lock.ClaimTimeout))
	for k := l.began(t) + 1; k < len(t.epochs); k++ { // an epoch moves it to its begin, or keeps the time that was used
		ok = ok || l.mayBeAnsweredIn(t, k, answer) && !at.After(t.epochs[k].by)
	}
	if !ok {
		c.violated(t, fmt.Sprintf("%q was told that token %d was granted at %s, but the event says %s.", l.holder,
			l.token, clock(at), clock(event)),
			[]*Call{answer}, l.granted)
	}
}

// endAgrees compares the end of a lease with the calls that may have caused it.
func (t *lockHistory) endAgrees(l *lease, c *Check) {
	if l.ended == nil || l.group == nil {
		return
	}
	switch l.ended.Kind {
	case lock.Released:
		c.Examined++
		if !slices.ContainsFunc(l.group.releaseCalls(), func(call *Call) bool { return mayEnd(call) || call.Verb == CloseSession }) {
			c.violated(t, fmt.Sprintf("The lease of %q with token %d was released, but no call did that.", l.holder,
				l.token), l.group.releases, l.ended)
		}
	case lock.Revoked:
		c.Examined++
		if !slices.ContainsFunc(t.calls, func(call *Call) bool {
			r, ok := call.Request.(lock.Revoke)
			return ok && mayEnd(call) && r.Token == l.token && r.Reason == l.ended.Reason && l.hasSlot(r.Slot)
		}) {
			c.violated(t, fmt.Sprintf("The lease of %q with token %d was revoked, but no call did that.", l.holder,
				l.token), nil, l.ended)
		}
		if s := l.skipped; s != nil && !slices.ContainsFunc(t.calls, func(call *Call) bool {
			r, ok := call.Request.(lock.Revoke)
			return ok && mayEnd(call) && r.SkipGrace && r.Token == l.token && r.Reason == s.Reason
		}) {
			c.violated(t, fmt.Sprintf("The grace of %q with token %d was skipped, but no call did that.", l.holder,
				l.token), nil, l.ended, s)
		}
	}
}

// opened reports whether a revocation of the token has opened the lock, which the release of its lease had closed.
func (t *lockHistory) opened(token lock.Token) bool {
	return slices.ContainsFunc(t.events, func(e lock.Event) bool { return e.Kind == lock.Opened && e.Token == token })
}

// openingsAgree looks for the calls that have opened the lock.
func (t *lockHistory) openingsAgree(c *Check) {
	for i := range t.events {
		e := &t.events[i]
		if e.Kind != lock.Opened {
			continue
		}
		c.Examined++
		if !slices.ContainsFunc(t.calls, func(call *Call) bool {
			r, ok := call.Request.(lock.Revoke)
			return ok && mayEnd(call) && r.Token == e.Token && r.Reason == e.Reason
		}) {
			c.violated(t, fmt.Sprintf("The lock, whose work %q had done with token %d, was opened, but no call did that.", e.Holder, e.Token), nil, e)
		}
	}
}

func mayEnd(call *Call) bool { return call.Outcome() == Done || call.Outcome() == Unknown }

// callAgrees looks for the events that confirm the answer.
func (t *lockHistory) callAgrees(call *Call, c *Check) {
	switch a := call.Request.(type) {
	case lock.Release:
		if call.Outcome() == Done {
			c.Examined++
			t.releaseAgrees(call, a, c)
		}
	case lock.Revoke:
		if call.Outcome() == Done {
			c.Examined++
			// Once no lease has the token, the slot does not matter: the lock knows its last end, and not whose it was.
			seen, _ := call.Response.(lock.Lock)
			over := !slices.ContainsFunc(seen.Leases, func(l lock.LeaseInfo) bool { return l.Token == a.Token })
			if !t.opened(a.Token) && !slices.ContainsFunc(t.leases, func(l *lease) bool {
				return l.token == a.Token && l.ended != nil && l.ended.Kind == lock.Revoked && (over || l.hasSlot(a.Slot))
			}) {
				c.violated(t, fmt.Sprintf("Token %d was revoked, but there is no event of it: it was lost.", a.Token),
					[]*Call{call}, t.grantOf(a.Token))
			}
		}
	case string, paddock.Watch:
		if read, ok := call.Response.(lock.Lock); ok {
			c.Examined++
			t.readAgrees(call, read, c)
		}
	}
	var e *lock.Error
	if errors.As(call.Err, &e) && e.Code == lock.ErrLeaseLost && e.Ended != 0 {
		c.Examined++
		t.lossAgrees(call, e, c)
	}
}

func (t *lockHistory) grantOf(token lock.Token) *lock.Event {
	for _, l := range t.leases {
		if l.token == token {
			return l.granted
		}
	}
	return nil
}

// releaseAgrees looks for the event of a release: the end of the lease, or of the wait.
func (t *lockHistory) releaseAgrees(call *Call, a lock.Release, c *Check) {
	r := t.groups[a.LeaseID]
	for _, l := range r.leases {
		if l.ended != nil && l.ended.Kind == lock.Released {
			return
		}
	}
	for i := range t.events {
		if e := &t.events[i]; e.Kind == lock.Dequeued && e.Holder == r.holder() {
			return
		}
	}
	var granted *lock.Event
	if len(r.leases) > 0 {
		granted = r.leases[len(r.leases)-1].granted
	}
	c.violated(t, fmt.Sprintf("The release by %q succeeded, but there is no event of it: it was lost.", r.holder()),
		[]*Call{call}, granted)
}

// readAgrees compares a read of the lock with the event of the revision that it shows.
func (t *lockHistory) readAgrees(call *Call, read lock.Lock, c *Check) {
	if read.Revision == 0 || t.inTree {
		return
	}
	i, found := slices.BinarySearchFunc(t.events, read.Revision,
		func(e lock.Event, r int64) int { return int(e.Revision - r) })
	if !found {
		c.violated(t, fmt.Sprintf("A read showed the lock at revision %d, but there is no such event: it was lost.",
			read.Revision), []*Call{call})
		return
	}
	if e := &t.events[i]; !e.At.Equal(read.ChangedAt) && !t.movedToEpoch(call, e, read.ChangedAt) {
		c.violated(t, fmt.Sprintf("A read showed revision %d with the time %s, but its event says %s.", e.Revision,
			clock(read.ChangedAt), clock(e.At)),
			[]*Call{call}, e)
	}
}

// movedToEpoch reports whether the time of the lock's last change, which an event had, is in the future of a later
// epoch, so that it was moved to the begin of that.
func (t *lockHistory) movedToEpoch(call *Call, e *lock.Event, changed time.Time) bool {
	_, last := t.epochsOf(call)
	for _, later := range t.epochs[min(t.epochs.of(e), last)+1 : last+1] {
		if changed.Before(e.At) && !changed.Before(later.from) && !changed.After(later.by) {
			return true
		}
	}
	return false
}

// lossAgrees compares the reported end of a lost lease with its event.
func (t *lockHistory) lossAgrees(call *Call, e *lock.Error, c *Check) {
	r := t.groupOf(call)
	if r == nil {
		return
	}
	var known *lease
	for _, l := range r.leases {
		if l.token != e.Token && call.whole == nil { // the token may be that of another lock of the set
			continue
		}
		known = l
		sameTime := l.ended != nil && (l.ended.At.Equal(e.EndedAt) || call.whole != nil && endedByTime(l.ended))
		if sameTime && l.ended.Kind == e.Ended || l.atMaxHold(e) {
			return
		}
	}
	if known == nil {
		c.violated(t, fmt.Sprintf("%q was told how its lease with token %d ended, but it never had such a lease.",
			r.holder(), e.Token), []*Call{call}, t.grantOf(e.Token))
		return
	}
	c.violated(t, fmt.Sprintf("%q was told that its lease with token %d was %s at %s, but the events disagree.",
		known.holder, known.token, e.Ended, clock(e.EndedAt)), []*Call{call}, known.granted, known.ended)
}

// atMaxHold reports whether the refusal may be due to max hold: then the lease cannot be renewed, but
// it ends only after its grace.
func (l *lease) atMaxHold(e *lock.Error) bool {
	a, ok := l.group.acquire()
	return ok && a.MaxHold > 0 && e.Ended == lock.Expired && (l.ended == nil || !l.ended.At.Before(e.EndedAt))
}

// queueAgrees compares the queued waiters with the calls that wait.
func (t *lockHistory) queueAgrees(c *Check) {
	waits := map[string]bool{}
	for _, call := range t.calls {
		if a, ok := call.Request.(lock.Acquire); ok && (a.Wait > 0 || a.KeepPlace) {
			waits[a.Holder] = true
		}
	}
	for i := range t.events {
		if e := &t.events[i]; e.Kind == lock.Queued {
			c.Examined++
			if !waits[e.Holder] {
				c.violated(t, fmt.Sprintf("%q joined the queue, but no call asked to wait.", e.Holder), nil, e)
			}
		}
	}
}

// refusals returns the number of Refused events, of all locks.
func (x *examination) refusals() (n int) {
	for _, e := range x.Events {
		if e.Kind == lock.Refused {
			n++
		}
	}
	return n
}

// recordRecovery is how long after an outage a stale write may still be without a record: it is refused all the same.
const recordRecovery = 5 * time.Second

// An outage is a span of time in which the service may have been unable to record something.
type outage struct{ from, to time.Duration }

// outages returns the spans of the faults, and of the calls that the service could not answer, such as while its
// database was down.
func (h History) outages() (all []outage) {
	for _, f := range h.Faults {
		if f.Ended <= f.At {
			f.Ended = math.MaxInt64 - recordRecovery
		}
		all = append(all, outage{f.At, f.Ended})
	}
	for _, c := range h.Calls {
		if errors.Is(c.Err, lock.ErrUnavailable) || errors.Is(c.Err, lock.ErrUnknownOutcome) {
			all = append(all, outage{c.Sent, c.Answered})
		}
	}
	return all
}

// staleAgree looks for the event of each stale write. There may be none if the limit of refusals is reached, or near
// an outage: then the record of a write can fail.
func (t *lockHistory) staleAgree(refusals int, outages []outage, c *Check) {
	if refusals >= paddock.MaxStaleReports {
		return
	}
	for _, call := range t.calls {
		w, ok := call.Request.(lock.FencedWrite)
		if !ok || !errors.Is(call.Err, lock.ErrStaleToken) || call.isNear(outages) || !t.overtakenBefore(w, call) {
			continue
		}
		c.Examined++
		if !slices.ContainsFunc(t.events, func(e lock.Event) bool { return e.Kind == lock.Refused && e.Token == w.Token }) {
			c.violated(t, fmt.Sprintf("A write with the stale token %d was refused, but there is no event of it.", w.Token),
				[]*Call{call}, t.grantOf(w.Token))
		}
	}
}

// isNear reports whether the call was made in one of the outages, or shortly after it.
func (c *Call) isNear(outages []outage) bool {
	return slices.ContainsFunc(outages, func(o outage) bool {
		return o.from <= c.Answered && c.Sent <= o.to+recordRecovery
	})
}

// overtakenBefore reports whether the token of the write was stale for this lock before the call, and not only for the
// resource.
func (t *lockHistory) overtakenBefore(w lock.FencedWrite, call *Call) bool {
	return slices.ContainsFunc(t.leases, func(l *lease) bool {
		answer := l.firstAnswer()
		return l.token > w.Token && w.Slot == 0 && answer != nil && answer.Answered < call.Sent
	})
}
