package verify

import (
	"cmp"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// An epoch is a part of the history: what happened on one database server. The clocks of different epochs have nothing
// in common.
type epoch struct {
	first int64 // id of the first event

	// The epoch began between these times on the recorder's clock: after the last call was sent that took effect in
	// the epoch before, and before the first answer that proves an event of this one.
	after, before time.Duration
	// from and by bound the same instant on the clock of this epoch. A zero from is unknown.
	from, by time.Time
	// The epoch before ended between these instants of its own clock. The first is that of its last event, and a lease
	// that was over by then stays over. A zero endedBy is unknown.
	ended, endedBy time.Time
	// granting is the instant of the first grant, zero for none, and granted when it was known. Grants may be paused before.
	granting time.Time
	granted  time.Duration
}

// epochs are those of a history, oldest first. The first one began before the history, or with it. They are found by
// the ids of the events, which jump: so all events must be of one database.
type epochs []epoch

// beginTakes is how long the begin of an epoch may take. An epoch that an operator begins on a server whose replicas go on
// has the instant of its first statement, and the last event of the epoch before may be so much later.
const beginTakes = 500 * time.Millisecond

// findEpochs returns the epochs of the history. proven has the latest times at which events were committed.
func (h History) findEpochs(locks []*lockHistory, proven map[int64]time.Duration) epochs {
	events := slices.SortedFunc(slices.Values(h.Events), func(a, b lock.Event) int { return cmp.Compare(a.ID, b.ID) })
	all := epochs{{before: -1}}
	for i, e := range events {
		if i > 0 && jumps(events[i-1], e, h.inCells) {
			all = append(all, epoch{first: e.ID, before: forever, granted: forever, by: e.At, ended: events[i-1].At.Add(-beginTakes)})
		}
		own := &all[len(all)-1]
		own.by = earlier(own.by, e.At)
		if e.Kind == lock.Granted && own.granting.IsZero() {
			own.granting = e.At
		}
		if at, ok := proven[e.ID]; ok {
			if e.Kind == lock.Granted {
				own.granted = min(own.granted, at)
			}
			for k := range all[1:] {
				all[k+1].before = min(all[k+1].before, at)
			}
		}
	}
	for _, t := range locks {
		for _, l := range t.leases {
			if l.granted != nil {
				from, _ := t.grantBounds(l)
				all.endAfter(l.granted, from)
			}
			if l.granted != nil && l.ended != nil {
				from, _ := t.endBounds(l)
				all.endAfter(l.ended, from)
			}
		}
	}
	return all
}

// jumps reports whether an epoch has begun between two events that follow each other. With several cells, a group that
// moves begins an epoch, too.
func jumps(before, e lock.Event, cells bool) bool {
	return e.ID-before.ID >= lock.EventJump || cells && cellOfEvent(before.ID) != cellOfEvent(e.ID)
}

// endAfter notes that a call had the event as its effect which was not sent before that time.
func (all epochs) endAfter(e *lock.Event, sent time.Duration) {
	for k := all.of(e) + 1; k < len(all); k++ {
		all[k].after = max(all[k].after, sent)
	}
}

// bound sets what the clocks of the epochs tell about their begins.
func (all epochs) bound(d clockBounds) {
	for k := 1; k < len(all); k++ {
		e := &all[k]
		if from, known := d.earliest(k, e.after); known {
			e.from = earlier(from, e.by).Add(-beginTakes)
		}
		e.endedBy, _ = d.latest(k-1, e.before)
	}
}

// of returns the number of the epoch of an event, from 0.
func (all epochs) of(e *lock.Event) int {
	k := 1
	for k < len(all) && all[k].first <= e.ID {
		k++
	}
	return k - 1
}

// compare orders two events by their epochs and the instants there.
func (all epochs) compare(a, b *lock.Event) int {
	return cmp.Or(cmp.Compare(all.of(a), all.of(b)), a.At.Compare(b.At))
}

// ofCall returns the epochs of which one has decided the call, if it was decided.
func (all epochs) ofCall(c *Call) (first, last int) {
	for k := range all {
		if all[k].before <= c.Sent {
			first = k
		}
		if k > 0 && (all[k].after < c.Answered || c.Outcome() == Unknown) {
			last = k
		}
	}
	return first, max(first, last)
}

// mayPause reports whether grants may have been paused when the call was decided.
func (all epochs) mayPause(c *Call) bool {
	first, last := all.ofCall(c)
	return slices.ContainsFunc(all[max(first, 1):last+1], func(e epoch) bool { return c.Sent < e.granted })
}

// ofAnswer is ofCall for a call that was answered with the lease: it was decided after the grant, and not after the
// end.
func (all epochs) ofAnswer(l *lease, c *Call) (first, last int) {
	first, last = all.ofCall(c)
	if l.granted != nil {
		first = max(first, all.of(l.granted))
	}
	if l.ended != nil {
		last = min(last, all.of(l.ended))
	}
	return first, max(first, last)
}

// isAfter reports whether the answer, whose instant is at, was certainly decided after the event or at its instant.
func (all epochs) isAfter(c *Call, at time.Time, e *lock.Event) bool {
	first, last := all.ofCall(c)
	k := all.of(e)
	return first > k || first == k && last == k && !at.Before(e.At)
}

// began returns the epoch in which the lease was granted.
func (l *lease) began(t *lockHistory) int {
	if l.granted == nil {
		first, _ := t.epochs.ofCall(l.firstAnswer())
		return first
	}
	return t.epochs.of(l.granted)
}

// answeredIn reports whether the call, which was answered with the lease, was certainly decided in the epoch.
func (l *lease) answeredIn(t *lockHistory, k int, c *Call) bool {
	first, last := t.epochs.ofAnswer(l, c)
	return first == k && last == k
}

// mayBeAnsweredIn reports whether it may have been.
func (l *lease) mayBeAnsweredIn(t *lockHistory, k int, c *Call) bool {
	first, last := t.epochs.ofAnswer(l, c)
	return first <= k && k <= last
}

// answers returns the calls that were answered with the lease.
func (l *lease) answers() []*Call { return slices.Concat(l.acquired, l.renewed) }
