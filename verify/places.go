package verify

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// placeSlack is how much earlier a place may end than computed. A wait begins at the instant of its decision, which may lag
// behind the database's clock by as much as an answer of the database took.
const placeSlack = time.Second

// placesLast checks that no waiter lost its place before its time, as it would with a service that ties places to
// connections. A place lasts as long as the wait that was asked for, and for lock.PlaceRetention at least, unless its
// client gives it up, or is told that it no longer waits. Whether a deadlock justly ended one is the business of
// another check.
func (x *examination) placesLast(t *lockHistory, c *Check) {
	groups, queued := map[string]*callGroup{}, map[int64]*lock.Event{}
	for _, g := range t.groups {
		groups[g.holder()] = g
	}
	for i := range t.events {
		e := &t.events[i]
		switch {
		case e.Kind == lock.Queued:
			queued[e.Place] = e
			c.Examined++
			continue
		case e.Kind != lock.Dequeued || e.Reason == reasonDeadlock || queued[e.Place] == nil:
			continue
		}
		g, since := groups[e.Holder], queued[e.Place]
		if g == nil || g.mayHaveLeft() || e.Reason == reasonAlreadyDone && g.asksOnce() {
			continue
		}
		if until, ok := g.placeUntil(x.clock, t.epochs.of(since), t.epochs.of(e)); ok && e.At.Before(until.Add(-placeSlack)) {
			c.violated(t, fmt.Sprintf("%q lost its place %d at %s. No call of it left the queue or was told that its wait was over, "+
				"so the place had to last until %s.", e.Holder, e.Place, clock(e.At), clock(until)), g.acquires, since, e)
		}
	}
}

// mayHaveLeft reports whether a call may have given up the place, or was told that it no longer waits. A release that
// was sent after a grant was answered is of the lease. Package client releases the lease_id when the context of its
// caller ends during a wait.
func (r *callGroup) mayHaveLeft() bool {
	leaves := func(c *Call) bool {
		return c.Verb == Release && !slices.ContainsFunc(r.acquires, func(a *Call) bool {
			return a.Outcome() == Done && a.Answered < c.Sent
		})
	}
	return len(r.closes) > 0 || slices.ContainsFunc(r.releases, leaves) ||
		slices.ContainsFunc(r.acquires, func(c *Call) bool {
			a := c.Request.(lock.Acquire)
			return a.SessionID != lock.SessionID{} || c.ContextEnded || a.Wait == 0 && !a.KeepPlace ||
				c.Outcome() == Refused && !keepsPlace(c.Err, a.KeepPlace)
		})
}

// asksOnce reports whether a closed lock ends the wait of the group.
func (r *callGroup) asksOnce() bool { a, _ := r.acquire(); return a.Once }

// placeUntil returns the earliest instant on the clock of the epoch at which the place of the group may end, false if
// unknown. An acquire that is repeated with a shorter wait may end it sooner. A place that is kept without a call
// when an epoch begins is kept for lock.MaxWait from then on.
func (r *callGroup) placeUntil(d clockBounds, since, k int) (first time.Time, known bool) {
	kept := k > since
	for _, c := range r.acquires {
		a := c.Request.(lock.Acquire)
		lasts := a.Wait
		if a.KeepPlace {
			lasts = max(lasts, lock.PlaceRetention)
		}
		sent, ok := d.earliest(k, c.Sent)
		if !ok {
			return first, false
		}
		if until := sent.Add(lasts); !known || until.Before(first) {
			first, known = until, true
		}
		kept = kept && c.Outcome() == Refused && c.Answered < d.epochs[k].after
	}
	if from := d.epochs[k].from; kept && !from.IsZero() {
		first = later(first, from.Add(lock.MaxWait))
	}
	return first, known
}
