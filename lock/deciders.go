package lock

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Deciders apply one command to its locks, each to one of them, in the order of the View. There is at least one.
//
// The time of a lock does not run backwards if the database's clock is set back. Then the locks of a set may have
// different times. Each goes by its own time, so that no lock ends leases because another one is ahead. But what the
// decision grants or renews begins at the latest of their times, so that the leases of a set begin and end together.
type deciders []*decider

// begin returns the deciders of the View's locks, which have changed nothing yet.
func begin(v View) deciders {
	ds, all, latest, drawn := make(deciders, len(v.Locks)), make([]decider, len(v.Locks)), v.Now, new(int)
	for i := range ds {
		now := v.Now
		if at := v.Locks[i].ChangedAt; now.Before(at) {
			now = at
		}
		if latest.Before(now) {
			latest = now
		}
		all[i] = decider{view: &v, now: now, record: v.Locks[i], drawn: drawn}
		ds[i] = &all[i]
	}
	for _, d := range ds {
		d.begin = latest
	}
	return ds
}

// applyTime makes the changes that time alone brings: it ends leases, withdraws unclaimed grants, removes lapsed
// places and promotes waiters. Every rule begins with it, so that it decides on the locks as they are now.
func (ds deciders) applyTime() {
	for _, d := range ds {
		d.endDue()
	}
	ds.promote()
}

// promote grants each lock to the waiters that are next and fit, see [decider.promote]. A set is granted when its
// waiters are next and fit at all of its locks. Until then it holds none of them, and at each of them the waiters
// behind it wait.
//
// A set joins all of its queues in one decision, so any two sets have the same order at each lock that they share.
// Hence sets never wait for each other in a circle.
func (ds deciders) promote() {
	for _, d := range ds {
		d.promote()
	}
	for len(ds) > 1 && ds.grantReady() {
	}
}

// grantReady grants one set that is ready at all of its locks, and returns true; or false if there is none.
func (ds deciders) grantReady() bool {
	for _, d := range ds {
		for _, w := range d.ready {
			if of := ds.readyFor(&w.Lease); of != nil {
				if d.more = d.hasDrawnAll(); d.more {
					return false
				}
				of.grantWaiters(&w.Lease)
				return true
			}
		}
	}
	return false
}

// readyFor returns the deciders of the set of the waiter's lease l, nil if it is not ready at all of them.
func (ds deciders) readyFor(l *Lease) (of deciders) {
	if len(l.Set) > len(ds) {
		return nil
	}
	for _, d := range ds {
		if d.readyWaiter(l) != nil {
			of = append(of, d)
		}
	}
	if len(of) < len(l.Set) {
		return nil
	}
	return of
}

// grantWaiters grants the waiters of the set of the lease l, which are ready.
func (ds deciders) grantWaiters(l *Lease) {
	waiters, modes := make([]Waiter, len(ds)), make([]Mode, len(ds))
	for i, d := range ds {
		waiters[i] = *d.readyWaiter(l)
		modes[i] = waiters[i].Lease.Mode
	}
	ds.grantEach(modes, func(i int, token Token) Token {
		d := ds[i]
		w, stays := d.grantWaiter(waiters[i], token)
		if stays {
			d.replaceWaiter(*w)
		} else {
			d.removeWaiter(w.Lease.ID)
		}
		d.freed = true
		granted, _ := d.lease(w.Lease.ID)
		return granted.Token
	})
	for _, d := range ds {
		d.promote()
	}
}

// grantEach grants a lease at each lock, in these modes. grant gets the token for it, zero to draw one, and returns the
// token that the lease has. Intentions come last, since they have the greatest token of what they stand for.
func (ds deciders) grantEach(modes []Mode, grant func(i int, token Token) Token) {
	token := Token(0)
	if len(ds) > 1 {
		token = ds.drawFor(modes)
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

// drawFor returns one token for all leases of a set, of these modes. It is greater than all tokens of its locks. It is
// zero if each lease is shared and joins others, whose tokens it gets.
func (ds deciders) drawFor(modes []Mode) Token {
	for i, d := range ds {
		if _, joins := d.record.firstReader(); !modes[i].IsIntention() && (!joins || modes[i] != Shared) {
			return d.drawToken()
		}
	}
	return 0
}

// finish returns the decision: a refusal unless err is nil.
func (ds deciders) finish(err error) Decision {
	d := ds[0]
	out := Decision{
		Now: d.begin, Changed: d.changed, Events: d.events, Ended: d.ended, Err: err, Promoted: d.promoted, Ousted: d.ousted,
		Claimed: d.claimed, Due: d.nextDue(), Locks: make([]Record, len(ds)),
	}
	for i, d := range ds {
		if out.Locks[i] = d.record; i > 0 {
			out.include(d)
		}
		out.Ready = append(out.Ready, ds.readyElsewhere(i)...)
	}
	return out
}

// readyElsewhere returns the sets that are ready at the i-th lock, and need others to be granted. In a tree there may
// be many, most of which were ready before: these are left out unless their turn may have come by time.
func (ds deciders) readyElsewhere(i int) (sets [][]string) {
	d := ds[i]
	if !d.freed {
		return nil
	}
	var before []*Waiter
	if !d.byTime && slices.ContainsFunc(d.ready, func(w *Waiter) bool { return w.Lease.Below != nil }) {
		before = d.readyBefore()
	}
	for _, w := range d.ready {
		was := slices.ContainsFunc(before, func(o *Waiter) bool { return o.Place == w.Place })
		if !was && !ds.haveAll(w.Lease.Set) {
			sets = append(sets, w.Lease.Set)
		}
	}
	return sets
}

// haveAll reports whether each lock of the set has a decider.
func (ds deciders) haveAll(set []string) bool {
	return len(ds) >= len(set) && !slices.ContainsFunc(set, func(name string) bool {
		return !slices.ContainsFunc(ds, func(d *decider) bool { return d.record.Name == name })
	})
}

// include adds what was decided on another lock. A waiter of a set is promoted or ousted once, not at each lock.
func (out *Decision) include(d *decider) {
	out.Changed = out.Changed || d.changed
	out.Events, out.Ended = append(out.Events, d.events...), append(out.Ended, d.ended...)
	for _, w := range d.promoted {
		at := slices.IndexFunc(out.Promoted, func(o Waiter) bool { return o.isSameCall(w) })
		switch {
		case at < 0:
			out.Promoted = append(out.Promoted, w)
		case out.Promoted[at].Lease.Mode.IsIntention():
			out.Promoted[at] = w
		}
	}
	for _, w := range d.ousted {
		if !slices.ContainsFunc(out.Ousted, func(o Waiter) bool { return o.isSameCall(w) }) {
			out.Ousted = append(out.Ousted, w)
		}
	}
	if due := d.nextDue(); out.Due.IsZero() || !due.IsZero() && due.Before(out.Due) {
		out.Due = due
	}
}

// isSameCall reports whether w and o are waiters of one call for a set.
func (w Waiter) isSameCall(o Waiter) bool {
	return w.Lease.ID == o.Lease.ID && w.Attachment == o.Attachment && w.Lease.Set != nil && slices.Equal(w.Lease.Set, o.Lease.Set)
}

// finishWithLeases returns a decision that grants the leases, one of each lock.
func (ds deciders) finishWithLeases(leases []Lease, replay bool) Decision {
	for i, d := range ds {
		d.removePromoted(leases[i].ID)
	}
	out := ds.finish(nil)
	out.Replayed = replay
	out.Lease, out.Members = LeasesAsked(leases)
	return out
}

// of returns the decider of the lock.
func (ds deciders) of(name string) *decider {
	return ds[slices.IndexFunc(ds, func(d *decider) bool { return d.record.Name == name })]
}

// leases returns the leases with the ID. all reports that each of the locks has one.
func (ds deciders) leases(id LeaseID) (found []Lease, all bool) {
	for _, d := range ds {
		if l, ok := d.lease(id); ok {
			found = append(found, l)
		}
	}
	return found, len(found) == len(ds)
}

// waiters returns the waiters with the ID. all reports that each of the locks has one.
func (ds deciders) waiters(id LeaseID) (found []Waiter, all bool) {
	for _, d := range ds {
		if w, ok := d.waiter(id); ok {
			found = append(found, w)
		}
	}
	return found, len(found) == len(ds)
}

// set returns the names of the locks, as in Lease.Set.
func (ds deciders) set() []string {
	if len(ds) == 1 {
		return nil
	}
	return ds.names()
}

// names returns the names of the locks.
func (ds deciders) names() []string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.record.Name
	}
	return names
}

// checkSet refuses a call that does not name exactly the locks that were acquired together. asked are the names of the
// call if the locks also have ancestors of them, otherwise nil.
func (ds deciders) checkSet(id LeaseID, asked []string) error {
	set := ds.set()
	if asked == nil {
		asked = ds.names()
	}
	check := func(l *Lease) error {
		names := l.Asked()
		switch {
		case slices.Equal(l.Set, set) && slices.Equal(names, asked):
			return nil
		case len(asked) == 1 && len(names) == 1:
			return &Error{Code: ErrLeaseInSet, Set: names, Detail: fmt.Sprintf("The lease is that of %s, which is below this lock. "+
				"Renew or release it by that name.", names[0])}
		case len(asked) == 1:
			return &Error{Code: ErrLeaseInSet, Set: names, Detail: fmt.Sprintf("The lease is one of %d that were acquired together. "+
				"Renew or release them together, by POST /v1/renew or /v1/release with names: %s.", len(names), strings.Join(names, ", "))}
		case len(names) == 1:
			return Invalid("names", "include a lock that was acquired alone; give only locks that were acquired together")
		}
		return Invalid("names", "must be exactly the locks that were acquired together: %s", strings.Join(names, ", "))
	}
	for _, d := range ds {
		var err error
		if l, ok := d.lease(id); ok {
			err = check(&l)
		} else if w, waits := d.waiter(id); waits {
			err = check(&w.Lease)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// errLost returns the refusal of a call with a lease that one of the locks does not have.
func (ds deciders) errLost(id LeaseID) error {
	lost := ds[0]
	for _, d := range ds {
		if _, has := d.lease(id); has {
			continue
		}
		if _, known := d.endOf(id); known {
			return d.errLost(id)
		}
		lost = d
	}
	return lost.errLost(id)
}

// hasEnded reports whether the lease has ended at one of the locks.
func (ds deciders) hasEnded(id LeaseID) bool {
	return slices.ContainsFunc(ds, func(d *decider) bool { _, ended := d.endOf(id); return ended })
}

// A BlockedLock is a lock of a set that cannot be granted now.
type BlockedLock struct {
	Name       string
	Holder     string        // of a lease in the way; empty if only waiters are, or grants are paused
	RetryAfter time.Duration // until the first lease ends, unless that is renewed
	Ahead      int           // how many attached waiters the lock has
}

// errHeld returns the refusal of a call with the ID that cannot be granted the locks, its members, now.
func (ds deciders) errHeld(members []Member, id LeaseID) *Error {
	if len(ds) == 1 && !slices.ContainsFunc(ds[0].record.Leases, func(l Lease) bool { return l.Mode.IsIntention() }) {
		return ds[0].errHeld(members[0].Mode)
	}
	asked := 0
	for _, m := range members {
		if !m.Mode.IsIntention() {
			asked++
		}
	}
	out := &Error{Code: ErrHeld}
	var texts []string
	for i, d := range ds {
		if d.fits(members[i], id) {
			continue
		}
		e := d.errHeld(members[i].Mode)
		if e.Code != ErrHeld {
			return e
		}
		b := BlockedLock{Name: d.nameInTheWay(members[i].Mode), Holder: e.Holder, RetryAfter: e.RetryAfter, Ahead: e.Ahead}
		if asked == 1 { // in a tree: one lock and its ancestors
			e.Blocked = []BlockedLock{b}
			return e
		}
		out.Blocked = append(out.Blocked, b)
		out.Holder, out.Newest = cmp.Or(out.Holder, e.Holder), max(out.Newest, e.Newest)
		out.RetryAfter, out.Ahead = max(out.RetryAfter, e.RetryAfter), max(out.Ahead, e.Ahead)
		texts = append(texts, b.text(d.record.isFull(members[i].Mode)))
	}
	if len(texts) == 0 {
		out.RetryAfter, out.Detail = retrySoon, "The locks cannot be granted right now. Retry."
		return out
	}
	out.Detail = fmt.Sprintf("Not all of the %d locks can be granted, so none is: %s. Retry later, or wait with wait_ms.",
		asked, strings.Join(texts, "; "))
	return out
}

// text says in an error message what blocks the lock. full is [Record.isFull].
func (b BlockedLock) text(full bool) string {
	switch {
	case full:
		return fmt.Sprintf("%s has %d leases, the most that a lock can have", b.Name, MaxHolders)
	case b.Holder == "":
		return fmt.Sprintf("%s has %d waiting", b.Name, b.Ahead)
	case b.Ahead == 0:
		return fmt.Sprintf("%q holds %s", b.Holder, b.Name)
	}
	return fmt.Sprintf("%q holds %s, %d waiting", b.Holder, b.Name, b.Ahead)
}

// fits reports whether the lock can be granted to the call for m: no lease conflicts, and no attached waiter is before
// its place, or at all if it has none.
func (d *decider) fits(m Member, id LeaseID) bool {
	for _, w := range d.record.Queue {
		if w.Lease.ID == id {
			break
		}
		if !w.GrantedUnclaimed && !m.Mode.passes(w.Lease.Mode) && d.attached(w) {
			return false
		}
	}
	return !d.paused() && d.record.isCompatible(m.Mode, m.Capacity)
}
