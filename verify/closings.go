package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// reasonAlreadyDone is the reason of the event that removes a waiter of lock.Acquire.Once from the queue of a closed lock.
const reasonAlreadyDone = "already done"

// A closing is a release that closed a lock, as it was answered.
type closing struct {
	lease   *lease
	release *Call
	closed  lock.Closing
	began   time.Time // when the lease was granted, by an answer
}

// closings checks that work which is done is not done again before it is due: after a release that closes a lock, and
// was answered, the lock is not granted before the instants that the release names.
func (x *examination) closings(t *lockHistory, c *Check) {
	for i, l := range t.leases {
		done, ok := t.closingOf(l)
		if !ok {
			continue
		}
		c.Examined++
		next := nextGrant(t.leases[i+1:])
		if next == nil || t.openedBetween(l.ended, next.granted) {
			continue
		}
		if what := done.forbids(next.granted.At); what != "" {
			c.violated(t, fmt.Sprintf("%q released the lock because its work was done, and %q was granted it at %s, %s.", l.holder, next.holder,
				clock(next.granted.At), what), []*Call{done.release}, l.ended, next.granted)
		}
	}
}

// closingOf returns how the lease closed the lock when it was released, false if it did not or that is not certain: each
// call that may have released the lease must ask for the same.
func (t *lockHistory) closingOf(l *lease) (closing, bool) {
	if l.ended == nil || l.ended.Kind != lock.Released || l.group == nil || len(l.acquired) == 0 {
		return closing{}, false
	}
	done := closing{lease: l, began: grant(l.acquired[0]).AcquiredAt}
	for _, e := range t.epochs[l.began(t)+1 : t.epochs.of(l.ended)+1] { // a clock that is behind moves it
		done.began = earlier(done.began, e.from)
	}
	for _, c := range l.group.releaseCalls() {
		r, ok := c.Request.(lock.Release)
		switch {
		case !ok || done.release != nil && r.Closed != done.closed:
			return closing{}, false
		case done.release == nil || c.Answered < done.release.Answered:
			done.release, done.closed = c, r.Closed
		}
	}
	return done, done.release != nil && (done.closed.For != 0 || done.closed.Period != "")
}

// nextGrant returns the first of the leases that has an event, nil if there is none.
func nextGrant(leases []*lease) *lease {
	i := slices.IndexFunc(leases, func(l *lease) bool { return l.granted != nil })
	if i < 0 {
		return nil
	}
	return leases[i]
}

// openedBetween reports whether an operator opened the lock between the two events.
func (t *lockHistory) openedBetween(from, to *lock.Event) bool {
	return slices.ContainsFunc(t.events, func(e lock.Event) bool {
		return e.Kind == lock.Opened && e.Revision > from.Revision && e.Revision < to.Revision
	})
}

// forbids returns why the lock may not be granted at that instant, empty if it may.
func (c closing) forbids(at time.Time) string {
	switch {
	case at.Before(c.began.Add(c.closed.For)):
		return fmt.Sprintf("less than %v after %s", c.closed.For, clock(c.began))
	case c.closed.Period == "" || !at.After(c.lease.ended.At):
		return ""
	}
	zone, err := time.LoadLocation(c.closed.Zone)
	if err != nil || periodOf(at.In(zone), c.closed.Period) != periodOf(c.began.In(zone), c.closed.Period) {
		return ""
	}
	return fmt.Sprintf("in the same %s of its work, which began at %s", c.closed.Period, clock(c.began))
}

// periodOf returns the name of the period that contains the instant, on the wall clock of its time zone. An hour that the
// clock shows twice is two hours.
func periodOf(t time.Time, p lock.Period) string {
	switch p {
	case lock.Minute:
		return t.Format("2006-01-02 15:04 -0700")
	case lock.Hour:
		return t.Format("2006-01-02 15 -0700")
	case lock.Week:
		year, week := t.ISOWeek()
		return fmt.Sprintf("%d, week %d", year, week)
	case lock.Month:
		return t.Format("2006-01")
	}
	return t.Format("2006-01-02")
}
