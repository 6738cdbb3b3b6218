package verify

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// brokenWithin is how soon the service refuses a call of each circle, beside promptWithin, or promptInTotal with
	// disturbances.
	brokenWithin = 2 * time.Second
	// maxCircleSteps bounds the search for circles that begin with one call.
	maxCircleSteps = 10_000
)

// A longWait is a call that certainly waited: it was sent once, and the service has answered it. It has a place in the
// queue of each lock of its set.
type longWait struct {
	call   *Call // the whole call
	task   lock.TaskID
	places []queuePlace
	next   []waitEdge
}

// A queuePlace is a call's place in the queue of one lock.
type queuePlace struct {
	at    *lockHistory
	group *callGroup
	mode  lock.Mode
	stay  stay
	epoch int // in which the stay is; one that an epoch interrupts does not count
}

// A waitEdge says that one call could not be granted its lock before another one was, for a time on the database's
// clock.
type waitEdge struct {
	to       *longWait
	from, by time.Time
	at       *lockHistory
	text     string
	events   []*lock.Event
}

// circles checks that each circle of waiting calls was broken: none lasted longer than the service may need. It uses
// only what is certain. A call counts if it was sent once and answered for good. A lease counts from its grant to its
// end, and no longer than an answer promised. It ends only after the waits of its task. Time counts as in the check of
// promptness.
func (x *examination) circles(c *Check) {
	all := x.longWaits(c)
	byTask, byLock := map[lock.TaskID][]*longWait{}, map[*lockHistory][]*longWait{}
	for _, w := range all {
		for i := range len(w.task) + 1 {
			if w.task != "" && (i == len(w.task) || w.task[i] == '.') {
				byTask[w.task[:i]] = append(byTask[w.task[:i]], w)
			}
		}
		for _, p := range w.places {
			byLock[p.at] = append(byLock[p.at], w)
		}
	}
	for _, w := range all {
		for _, p := range w.places {
			w.addEdges(p, byTask, byLock[p.at])
		}
	}
	found := map[*longWait]bool{}
	for _, w := range all {
		if s := (circleSearch{examination: x, first: w}); !found[w] && s.visit(w, time.Time{}, time.Time{}) {
			for _, e := range s.path {
				found[e.to] = true
			}
			x.circleViolated(c, s)
		}
	}
}

// longWaits returns the waits that lasted longer than it takes to break a circle, in the order of their calls. It
// counts all waits of a task as examined.
func (x *examination) longWaits(c *Check) []*longWait {
	waits := map[*Call]*longWait{}
	for _, t := range x.locks {
		stays := t.staysByHolder()
		for _, r := range t.groups {
			call, ok := r.onlyWait()
			if !ok || stays[r.holder()] == nil || len(stays[r.holder()].all) != 1 || len(t.requests(r.holder())) != 1 {
				continue
			}
			a, _ := r.acquire()
			if a.Thread() != "" {
				c.Examined++
			}
			s := stays[r.holder()].all[0]
			if s.to == nil || t.epochs.of(s.from) != t.epochs.of(s.to) || s.to.At.Sub(s.from.At) <= brokenWithin+promptWithin {
				continue
			}
			if waits[call] == nil {
				waits[call] = &longWait{call: call, task: a.Thread()}
			}
			waits[call].places = append(waits[call].places, queuePlace{t, r, a.Locks[0].Mode, s, t.epochs.of(s.from)})
		}
	}
	return slices.SortedFunc(maps.Values(waits), func(a, b *longWait) int { return cmp.Compare(a.call.ID, b.call.ID) })
}

// onlyWait returns the call of the group, as a whole, if it has waited and is the only one.
func (r *callGroup) onlyWait() (*Call, bool) {
	if len(r.acquires) != 1 {
		return nil, false
	}
	call := r.acquires[0]
	a := call.Request.(lock.Acquire)
	if call.whole != nil {
		call = call.whole
	}
	outcome := call.Outcome()
	return call, a.Wait > 0 && !a.KeepPlace && !call.Cancelled && (outcome == Done || outcome == Refused)
}

// staysByHolder returns the stays in the queue, by the holders of the calls.
func (t *lockHistory) staysByHolder() map[string]*holderStays {
	all := map[string]*holderStays{}
	for i := range t.events {
		e := &t.events[i]
		if all[e.Holder] == nil {
			all[e.Holder] = newHolderStays()
		}
		all[e.Holder].add(e)
	}
	return all
}

// addEdges adds what the call waits for at one lock: the calls under the leases that conflict with it, and the calls
// of others that are ahead of it.
func (w *longWait) addEdges(p queuePlace, byTask map[lock.TaskID][]*longWait, others []*longWait) {
	for _, l := range p.at.leases {
		task := l.task()
		if task == "" || len(byTask[task]) == 0 || !conflict(l.mode, p.mode) {
			continue
		}
		text := fmt.Sprintf("%q waited for %s, held by %q", p.group.holder(), p.at.name, l.holder)
		if p.at.epochs.of(l.granted) > p.epoch {
			continue
		}
		for _, v := range byTask[task] {
			w.addEdge(v, p, l.granted.At, l.certainEnd(p.at, p.epoch), text, l.granted)
		}
	}
	for _, v := range others {
		for _, o := range v.places {
			if o.at == p.at && o.stay.place < p.stay.place {
				text := fmt.Sprintf("%q waited for %s behind %q", p.group.holder(), p.at.name, o.group.holder())
				w.addEdge(v, p, o.stay.from.At, o.stay.to.At, text, o.stay.from)
			}
		}
	}
}

// addEdge adds an edge to a call, for the time in which both wait, between the instants.
func (w *longWait) addEdge(v *longWait, p queuePlace, from, by time.Time, text string, because *lock.Event) {
	from, by = later(from, p.stay.from.At), earlier(by, p.stay.to.At)
	for _, o := range v.places {
		if o.epoch != p.epoch {
			return
		}
		from, by = later(from, o.stay.from.At), earlier(by, o.stay.to.At)
	}
	if by.Sub(from) > brokenWithin+promptWithin {
		w.next = append(w.next, waitEdge{v, from, by, p.at, text, []*lock.Event{p.stay.from, because}})
	}
}

// task returns the task of the lease, empty if it is unknown or if its acquires differ.
func (l *lease) task() (task lock.TaskID) {
	if l.group == nil || l.granted == nil {
		return ""
	}
	for i, c := range l.group.acquires {
		if own := c.Request.(lock.Acquire).Thread(); i == 0 {
			task = own
		} else if own != task {
			return ""
		}
	}
	return task
}

// certainEnd returns until when the lease was certainly active on the clock of the epoch: until the end that was
// promised, or its end.
func (l *lease) certainEnd(t *lockHistory, k int) time.Time {
	end, _ := l.promisedEnd(t, k)
	switch {
	case l.ended == nil:
	case t.epochs.of(l.ended) < k:
		return time.Time{}
	case t.epochs.of(l.ended) == k:
		end = earlier(end, l.ended.At)
	}
	return end
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// A circleSearch looks for a circle that begins with one call and lasted too long.
type circleSearch struct {
	*examination
	first *longWait
	path  []waitEdge
	on    map[*longWait]bool
	steps int
	lasts time.Duration // of the circle that was found, undisturbed
}

// visit continues the path at w, which is the end of a path that lasted between the instants. It returns true if there
// is a circle.
func (s *circleSearch) visit(w *longWait, from, by time.Time) bool {
	if s.on == nil {
		s.on = map[*longWait]bool{}
	}
	s.on[w] = true
	for _, e := range w.next {
		if s.steps++; s.steps > maxCircleSteps {
			return false
		}
		if s.on[e.to] && e.to != s.first {
			continue
		}
		begin, end := e.from, e.by
		if len(s.path) > 0 {
			begin, end = later(from, e.from), earlier(by, e.by)
		}
		s.path = append(s.path, e)
		if s.lasts = s.undisturbed(begin, end); s.lasts > 0 && (e.to == s.first || s.visit(e.to, begin, end)) {
			return true
		}
		s.path = s.path[:len(s.path)-1]
	}
	delete(s.on, w)
	return false
}

// undisturbed returns the undisturbed time of the path between the instants, zero if the service may need so long. All
// calls of the path were under way at that time, so what was disturbed while all of them were is the most that can
// have been disturbed in it.
func (s *circleSearch) undisturbed(from, by time.Time) time.Duration {
	lasted := by.Sub(from)
	if lasted <= brokenWithin+promptWithin {
		return 0
	}
	sent, answered := s.first.call.Sent, s.first.call.Answered
	for _, e := range s.path {
		sent, answered = max(sent, e.to.call.Sent), min(answered, e.to.call.Answered)
	}
	longest, total := lasted, lasted
	before := max(answered-sent-lasted, 0) // of that, not in the circle
	for _, e := range s.path {
		d, known := s.index.disturbed[e.to.call.Via]
		if !known {
			return 0
		}
		most, sum := d.undisturbed(sent, answered)
		longest, total = min(longest, most-before), min(total, sum-before)
	}
	if longest > brokenWithin+promptWithin || total > brokenWithin+promptInTotal {
		return total
	}
	return 0
}

func (x *examination) circleViolated(c *Check, s circleSearch) {
	var steps []string
	var calls []*Call
	for _, e := range s.path {
		steps, calls = append(steps, e.text), append(calls, e.to.call)
	}
	what := fmt.Sprintf("A circle of %d waiting calls was not broken in %v of undisturbed time: %s.", len(steps), s.lasts,
		strings.Join(steps, "; "))
	c.violated(s.path[0].at, what, calls, s.path[0].events...)
}
