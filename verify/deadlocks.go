package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// reasonDeadlock is the reason of the event that removes the victim of a deadlock from a queue.
const reasonDeadlock = "deadlock"

// An instant is when a deadlock was decided, as seen at one lock.
type instant struct {
	at    time.Time
	epoch int
	// revision is that of the event which removed the victim there; zero if the victim did not wait there. Instants of
	// different locks are equal to setSpread only.
	revision int64
}

// isWithin reports whether the instant is between the two events. A nil event is not reached yet.
func (n instant) isWithin(all epochs, from, to *lock.Event) bool {
	if n.revision > 0 {
		return from.Revision < n.revision && (to == nil || to.Revision >= n.revision)
	}
	return !n.isBefore(all, from) && (to == nil || !n.isAfter(all, to))
}

// isBefore and isAfter report whether the instant is certainly before or after the event of another lock.
func (n instant) isBefore(all epochs, e *lock.Event) bool {
	k := all.of(e)
	return n.epoch < k || n.epoch == k && e.At.After(n.at.Add(setSpread))
}

func (n instant) isAfter(all epochs, e *lock.Event) bool {
	k := all.of(e)
	return n.epoch > k || n.epoch == k && e.At.Before(n.at.Add(-setSpread))
}

// A stay is the time in which a call had a place in the queue.
type stay struct {
	place    int64
	from, to *lock.Event // to is nil if it does not end
}

// The holderStays are the stays of one holder's calls in the queue of a lock. A call whose grant was withdrawn has its
// place again.
type holderStays struct {
	all     []stay
	granted map[lock.Token]int64 // the place
}

func newHolderStays() *holderStays { return &holderStays{granted: map[lock.Token]int64{}} }

// add adds the holder's next event.
func (h *holderStays) add(e *lock.Event) {
	switch e.Kind {
	case lock.Queued:
		h.all = append(h.all, stay{place: e.Place, from: e})
	case lock.Withdrawn:
		if place := h.granted[e.Token]; place != 0 {
			h.all = append(h.all, stay{place: place, from: e})
		}
	case lock.Granted, lock.Dequeued:
		h.granted[e.Token] = e.Place
		for i := range h.all {
			if s := &h.all[i]; s.place == e.Place && s.to == nil {
				s.to = e
			}
		}
	}
}

// stays returns the stays of the holder's calls in the queue.
func (t *lockHistory) stays(holder string) []stay {
	h := newHolderStays()
	for i := range t.events {
		if e := &t.events[i]; e.Holder == holder {
			h.add(e)
		}
	}
	return h.all
}

// requests returns the groups of calls of the holder, none if no call was recorded.
func (t *lockHistory) requests(holder string) (all []*callGroup) {
	if t == nil {
		return nil
	}
	for _, r := range t.groups {
		if r.holder() == holder {
			all = append(all, r)
		}
	}
	return all
}

// includesTaskOf reports whether the task of an acquire of r includes that of an acquire of other.
func (r *callGroup) includesTaskOf(other *callGroup) bool {
	return slices.ContainsFunc(r.acquires, func(c *Call) bool {
		task := c.Request.(lock.Acquire).Thread()
		return slices.ContainsFunc(other.acquires, func(o *Call) bool { return task.Includes(o.Request.(lock.Acquire).Thread()) })
	})
}

// deadlocks checks that each call which was refused with lock.ErrDeadlock has a task, and waited in the circle that its
// answer shows, of which the last call waits for a lease of that task: by the events, each call of the circle waited at
// that instant, and what it waited for was in its way. Of a call whose answer was lost the event shows the circle. What
// is said of calls that were not recorded is taken for true.
func (x *examination) deadlocks(c *Check) {
	byName := map[string]*lockHistory{}
	for _, t := range x.locks {
		byName[t.name] = t
	}
	for _, t := range x.locks {
		for _, call := range t.calls {
			a, acquires := call.Request.(lock.Acquire)
			if !acquires || call.whole != nil && t.name != call.whole.names()[0] {
				continue
			}
			v := victim{call: call, at: t, locks: byName, acquire: a, removed: t.deadlocksOf(a.Holder)}
			e := (*lock.Error)(nil)
			switch {
			case errors.Is(call.Err, lock.ErrDeadlock) && errors.As(call.Err, &e):
				v.cycle = e.Cycle
			case call.Outcome() == Unknown && len(v.removed) == 1 && len(v.removed[0].Cycle) > 0:
				v.cycle = v.removed[0].Cycle.Steps()
			default:
				continue
			}
			c.Examined++
			if what := v.refutation(); what != "" {
				c.violated(t, fmt.Sprintf("%q was refused with deadlock, but %s.", a.Holder, what), []*Call{call}, v.removed...)
			}
		}
	}
}

// A victim is a call that was refused with lock.ErrDeadlock.
type victim struct {
	call    *Call
	acquire lock.Acquire
	at      *lockHistory // of its first lock
	locks   map[string]*lockHistory
	cycle   []lock.DeadlockStep
	removed []*lock.Event // that removed it from the queue of its first lock because of a deadlock
}

func (t *lockHistory) deadlocksOf(holder string) (all []*lock.Event) {
	for i := range t.events {
		if e := &t.events[i]; e.Kind == lock.Dequeued && e.Reason == reasonDeadlock && e.Holder == holder {
			all = append(all, e)
		}
	}
	return all
}

// refutation returns why the refusal is not true, empty if it is true. A call that was sent twice may have been in
// several deadlocks; one of them justifies the answer.
func (v victim) refutation() (what string) {
	switch {
	case v.acquire.Wait == 0:
		return "it did not ask to wait"
	case v.acquire.Thread() == "":
		return "it has no task and no session, so it can hold nothing up"
	case len(v.cycle) == 0:
		return "not of its circle"
	case v.cycle[0].Holder != v.acquire.Holder:
		return fmt.Sprintf("the circle begins with %q", v.cycle[0].Holder)
	}
	what = "no event removed it from the queue because of that"
	for _, r := range v.removed {
		when, missing := v.instants(r)
		if missing != "" {
			what = "it was not removed from the queue of " + missing
			continue
		}
		if what = v.cycleIsWrong(v.cycle, r, when); what == "" {
			return ""
		}
	}
	return what
}

// instants returns when the decision that removed the victim was, by the names of its locks. If another lock of its set
// has no event of that, it returns its name.
func (v victim) instants(r *lock.Event) (when map[string]instant, missing string) {
	when = map[string]instant{v.at.name: {r.At, v.at.epochs.of(r), r.Revision}}
	if v.call.whole == nil {
		return when, ""
	}
	for _, name := range v.call.whole.names()[1:] {
		all := v.locks[name].deadlocksOf(v.acquire.Holder)
		i := slices.IndexFunc(all, func(o *lock.Event) bool { return v.at.epochs.atOnce(r, o) })
		if i < 0 {
			return nil, name
		}
		when[name] = instant{all[i].At, v.at.epochs.of(all[i]), all[i].Revision}
	}
	return when, ""
}

// cycleIsWrong returns what is wrong in the circle, empty for nothing.
func (v victim) cycleIsWrong(cycle []lock.DeadlockStep, removed *lock.Event, when map[string]instant) string {
	seenAt := func(name string) moment {
		n, ok := when[name]
		if !ok {
			n = instant{at: removed.At, epoch: v.at.epochs.of(removed)}
		}
		return moment{v.locks[name], n}
	}
	for i, s := range cycle {
		next := cycle[(i+1)%len(cycle)]
		requests := v.locks[next.Name].requests(next.Holder)
		if what := stepIsWrong(s, seenAt(s.Name), seenAt(cmp.Or(s.At, s.Name)), next, requests); what != "" {
			return what
		}
	}
	if cycle[len(cycle)-1].Ahead {
		return "no call of the circle waits for what its task holds"
	}
	return ""
}

// A moment is the instant of a deadlock, as seen at a lock; nil if nothing was recorded there.
type moment struct {
	*lockHistory
	instant
}

// stepIsWrong returns what is wrong in one step of a circle, empty for nothing. own is at the lock that the step waits
// for, and there at that of what is in its way. The requests are those of the next step's call.
func stepIsWrong(s lock.DeadlockStep, own, there moment, next lock.DeadlockStep, requests []*callGroup) string {
	if s.Ahead && s.WaitsFor != next.Holder {
		return fmt.Sprintf("%q waited for %q, not for %q", s.Holder, s.WaitsFor, next.Holder)
	}
	if len(own.requests(s.Holder)) == 0 {
		return ""
	}
	stay := own.stayAt(s.Holder, own.instant)
	switch {
	case stay == nil:
		return fmt.Sprintf("%q did not wait for %s", s.Holder, s.Name)
	case len(there.requests(s.WaitsFor)) == 0:
		return ""
	case s.Ahead: // the places of different locks have no order
		o := there.stayAt(s.WaitsFor, there.instant)
		if o == nil || s.At == "" && o.place >= stay.place {
			return fmt.Sprintf("%q was not ahead of %q in the queue of %s", s.WaitsFor, s.Holder, there.name)
		}
		return ""
	}
	held, belongs := false, len(requests) == 0
	for _, l := range there.leases {
		if l.holder != s.WaitsFor || l.granted == nil || !there.isWithin(there.epochs, l.granted, l.ended) {
			continue
		}
		held = true
		belongs = belongs || l.group == nil || slices.ContainsFunc(requests, l.group.includesTaskOf)
	}
	switch {
	case !held:
		return fmt.Sprintf("%q did not hold %s", s.WaitsFor, there.name)
	case !belongs:
		return fmt.Sprintf("the task of %q, which held %s, does not include that of %q", s.WaitsFor, there.name, next.Holder)
	}
	return ""
}

// stayAt returns the stay of the holder's call in the queue at that instant, nil if there is none.
func (t *lockHistory) stayAt(holder string, n instant) *stay {
	for _, s := range t.stays(holder) {
		if n.isWithin(t.epochs, s.from, s.to) {
			return &s
		}
	}
	return nil
}

// taskText describes the task of an acquire, empty if there is none.
func taskText(t lock.TaskID) string {
	if t == "" {
		return ""
	}
	return ", task " + string(t)
}
