package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

// agrees checks that what was answered is in the events, and that every event has a
// call that may have caused it.
func (x *examination) agrees(t *lockHistory, c *Check) {
	for _, l := range t.leases {
		t.grantAgrees(l, c)
		t.endAgrees(l, c)
	}
	for _, call := range t.calls {
		t.callAgrees(call, c)
	}
	t.queueAgrees(c)
}

// grantAgrees holds a lease against the acquires that asked for it.
func (t *lockHistory) grantAgrees(l *lease, c *Check) {
	c.Examined++
	switch {
	case l.granted == nil:
		c.violated(t, fmt.Sprintf("%q was told that it has the lock with token %d in slot %d, and no event tells of that grant: it was lost.",
			l.holder, l.token, l.slot), []*Call{l.firstAnswer()})
		return
	case l.group == nil:
		c.violated(t, fmt.Sprintf("%q was granted the lock with token %d, and nobody had asked for that.", l.holder, l.token), nil, l.granted)
		return
	}
	if a, _ := l.group.acquire(); a.Mode != l.mode || a.Holder != l.holder {
		c.violated(t, fmt.Sprintf("%q was granted the lock as %s, and had asked for it as %s %q.", l.holder, l.mode, a.Mode, a.Holder), l.group.acquires, l.granted)
	}
	if l.ended != nil && l.ended.Kind == lock.Withdrawn {
		if told := l.firstAnswer(); told != nil {
			c.violated(t, fmt.Sprintf("The grant with token %d was withdrawn as if nobody knew of it, and %q had been told.", l.token, l.holder),
				[]*Call{told}, l.granted, l.ended)
		}
		return
	}
	if !slices.ContainsFunc(l.group.acquires, mayGrant) {
		c.violated(t, fmt.Sprintf("%q was granted the lock with token %d, and was told that it was not.", l.holder, l.token), l.group.acquires, l.granted)
	}
	for _, told := range l.acquired {
		t.instantAgrees(l, told, c)
	}
}

// mayGrant is whether the call may have had the lock be granted. One that was to
// wait may have, whatever it was told: it may have left its place to be found again,
// or have been cut off where nobody could take the grant back.
func mayGrant(call *Call) bool {
	a := call.Request.(lock.Acquire)
	switch call.Outcome() {
	case Done, Unknown:
		return true
	case NotDone:
		return a.Wait > 0 || a.KeepPlace
	}
	return errors.Is(call.Err, lock.ErrLeaseLost) // it had the lock, and lost it
}

// instantAgrees holds the instant of a grant that was answered against the event's.
// A grant out of the queue may begin when it is fetched, a while after the event.
func (t *lockHistory) instantAgrees(l *lease, told *Call, c *Check) {
	at, event := grant(told).AcquiredAt, l.granted.At
	ok := at.Equal(event) || l.granted.Place != 0 && at.After(event) && !at.After(event.Add(lock.ClaimTimeout))
	if !ok && !l.crossesEpoch(t) {
		c.violated(t, fmt.Sprintf("%q was told that token %d was granted at %s, and the event is of %s.", l.holder, l.token, clock(at), clock(event)),
			[]*Call{told}, l.granted)
	}
}

// endAgrees holds the end of a lease against the calls that may have ended it.
func (t *lockHistory) endAgrees(l *lease, c *Check) {
	if l.ended == nil || l.group == nil {
		return
	}
	switch l.ended.Kind {
	case lock.Released:
		c.Examined++
		if !slices.ContainsFunc(l.group.releases, mayEnd) {
			c.violated(t, fmt.Sprintf("The lease of %q with token %d was released, and nobody did that.", l.holder, l.token), l.group.releases, l.ended)
		}
	case lock.Revoked:
		c.Examined++
		if !slices.ContainsFunc(t.calls, func(call *Call) bool {
			r, ok := call.Request.(lock.Revoke)
			return ok && mayEnd(call) && r.Token == l.token && r.Reason == l.ended.Reason && (r.Slot == nil || *r.Slot == l.slot)
		}) {
			c.violated(t, fmt.Sprintf("The lease of %q with token %d was revoked, and nobody did that.", l.holder, l.token), nil, l.ended)
		}
		if s := l.skipped; s != nil && !slices.ContainsFunc(t.calls, func(call *Call) bool {
			r, ok := call.Request.(lock.Revoke)
			return ok && mayEnd(call) && r.SkipGrace && r.Token == l.token && r.Reason == s.Reason
		}) {
			c.violated(t, fmt.Sprintf("The grace of %q with token %d was skipped, and no call asked for that.", l.holder, l.token), nil, l.ended, s)
		}
	}
}

func mayEnd(call *Call) bool { return call.Outcome() == Done || call.Outcome() == Unknown }

// callAgrees looks for what the call was told in the events.
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
			if !slices.ContainsFunc(t.leases, func(l *lease) bool {
				return l.token == a.Token && l.ended != nil && l.ended.Kind == lock.Revoked && (a.Slot == nil || *a.Slot == l.slot)
			}) {
				c.violated(t, fmt.Sprintf("Token %d was revoked, and no event tells of it: it was lost.", a.Token), []*Call{call}, t.grantOf(a.Token))
			}
		}
	case string, lock.Watch:
		if look, ok := call.Response.(lock.Lock); ok {
			c.Examined++
			t.readAgrees(call, look, c)
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

// releaseAgrees looks for the event of a release: the end of the lease, or that a
// place in the queue was given up.
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
	c.violated(t, fmt.Sprintf("The release of %q was done, and no event tells of it: it was lost.", r.holder()), []*Call{call}, granted)
}

// readAgrees holds what was seen of the lock against the event that made it so.
func (t *lockHistory) readAgrees(call *Call, look lock.Lock, c *Check) {
	if look.Revision == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(t.events, look.Revision, func(e lock.Event, r int64) int { return int(e.Revision - r) })
	if !found {
		c.violated(t, fmt.Sprintf("The lock was seen at revision %d, and no event tells of that: it was lost.", look.Revision), []*Call{call})
		return
	}
	if e := &t.events[i]; !e.At.Equal(look.ChangedAt) && !t.hasEpoch() {
		c.violated(t, fmt.Sprintf("The lock was seen at revision %d as of %s, and its event is of %s.", e.Revision, clock(look.ChangedAt), clock(e.At)),
			[]*Call{call}, e)
	}
}

// lossAgrees holds how a lease is said to have ended against its event.
func (t *lockHistory) lossAgrees(call *Call, e *lock.Error, c *Check) {
	r := t.groupOf(call)
	if r == nil {
		return
	}
	var known *lease
	for _, l := range r.leases {
		if l.token != e.Token {
			continue
		}
		if known = l; l.ended != nil && l.ended.Kind == e.Ended && l.ended.At.Equal(e.EndedAt) || l.atMaxHold(e) {
			return
		}
	}
	if known == nil {
		c.violated(t, fmt.Sprintf("%q was told how its lease with token %d ended, and it never had that.", r.holder(), e.Token), []*Call{call}, t.grantOf(e.Token))
		return
	}
	c.violated(t, fmt.Sprintf("%q was told that its lease with token %d was %s at %s, and the events tell another story.",
		known.holder, known.token, e.Ended, clock(e.EndedAt)), []*Call{call}, known.granted, known.ended)
}

// atMaxHold is whether the refusal may be that the lease has reached its greatest
// hold: it cannot be renewed then, and is not over before its grace is.
func (l *lease) atMaxHold(e *lock.Error) bool {
	a, ok := l.group.acquire()
	return ok && a.MaxHold > 0 && e.Ended == lock.Expired && (l.ended == nil || !l.ended.At.Before(e.EndedAt))
}

// queueAgrees holds who joined the queue against the calls that wait.
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
				c.violated(t, fmt.Sprintf("%q joined the queue, and had not asked to.", e.Holder), nil, e)
			}
		}
	}
}
