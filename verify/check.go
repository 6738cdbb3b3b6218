package verify

import (
	"runtime"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// CheckOptions say what a History need not prove. The zero value demands all.
type CheckOptions struct {
	// Passed allows that waiters are passed over, as those are at whose places no call
	// waits: whenever a client goes away, or a replica dies.
	Passed bool
	// Unfinished allows that somebody still waits at the end.
	Unfinished bool
	// Restored allows that the database was put back to a state from before the first call, without
	// a mark: calls and their events may be lost. Then the History proves only that leases which
	// conflict do not overlap, that tokens grow, and that no token is granted twice.
	Restored bool
	// Paused are clients that were stopped at times, and so may believe for longer in a
	// lease than it lasts. What they believe is not looked at.
	Paused []int
	// WaitersPerLock is how many may wait for one lock; zero: that is not checked. It is for a
	// load whose connections end visibly: a waiter on a connection that hangs may be counted
	// for longer than its client knows.
	WaitersPerLock int
	// Timeout is for how long to look for an order of the operations of one lock; zero:
	// UsualTimeout. An order that is not found in time is a violation.
	Timeout time.Duration
}

// UsualTimeout is for how long an order of the operations of one lock is looked for.
const UsualTimeout = 30 * time.Second

// The names of the checks.
const (
	checkEvents    = "the events of each lock keep its rules"
	checkExclusion = "leases that conflict do not overlap, and tokens grow"
	checkRevival   = "no lease that was over comes back"
	checkAgreement = "answers and events tell the same"
	checkEarly     = "no lease ends before it was said to"
	checkFenced    = "fenced writes follow one another"
	checkOnce      = "nothing is done twice"
	checkOrder     = "all could have happened one after the other, by the rules"
	checkLimit     = "no call is refused to wait while there is room"
	checkBelief    = "no two clients believed at once that the lock was theirs"
	checkTold      = "every subscriber was told every event, once and in order"
	checkPrompt    = "subscribers were told promptly"
	checkBlocking  = "blocking reads returned when the lock changed"
)

// Check holds what was answered against the rules of package lock, against itself and
// against the events.
func (h History) Check(o CheckOptions) Report {
	if o.Timeout == 0 {
		o.Timeout = UsualTimeout
	}
	x := &examination{History: h, options: o, tales: h.tales(), clock: h.dial()}
	x.index = x.newIndex()
	r := Report{Operations: len(h.Calls), Faults: len(h.Faults), Events: len(h.Events), Locks: len(x.tales), faults: h.Faults}
	for _, c := range x.checks() {
		check := Check{Name: c.name, Skipped: x.skips(c)}
		if check.Skipped == "" {
			c.examine(&check)
		}
		r.Checks = append(r.Checks, check)
	}
	r.picture = x.picture(r)
	return r
}

// An examination is a History while it is checked.
type examination struct {
	History
	options CheckOptions
	tales   []*tale
	clock   dial

	index *index // for the checks of subscribers
}

// A checker is one of the checks.
type checker struct {
	name    string
	events  bool // whether it needs them
	examine func(*Check)
}

func (x *examination) checks() []checker {
	checks := []checker{
		{checkEvents, true, x.each(x.keepsRules)},
		{checkExclusion, false, x.each(x.excludes)},
		{checkRevival, false, x.each(x.notRevived)},
		{checkAgreement, true, x.each(x.agrees)},
		{checkEarly, false, x.each(x.notEarly)},
		{checkFenced, false, x.fenced},
		{checkOnce, false, x.once},
		{checkOrder, true, x.each(x.inOrder)},
		{checkBelief, false, x.each(x.believed)},
		{checkTold, true, x.told},
		{checkPrompt, true, x.prompt},
		{checkBlocking, true, x.each(x.returned)},
	}
	if x.options.WaitersPerLock > 0 {
		checks = append(checks, checker{checkLimit, false, x.each(x.roomLeft)})
	}
	return checks
}

// skips returns why a check proves nothing about this History, empty if it proves something.
func (x *examination) skips(c checker) string {
	outlives := c.name == checkExclusion || c.name == checkOnce || c.name == checkBelief
	switch {
	case x.options.Restored && !outlives:
		return "the database was restored"
	case c.events && x.Events == nil:
		return "no events were collected"
	}
	return ""
}

// each returns a check of all locks, by as many at a time as there are processors.
func (x *examination) each(one func(*tale, *Check)) func(*Check) {
	return func(c *Check) {
		parts := make([]Check, len(x.tales))
		var all sync.WaitGroup
		free := make(chan struct{}, runtime.GOMAXPROCS(0))
		for i, t := range x.tales {
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				one(t, &parts[i])
			})
		}
		all.Wait()
		for _, p := range parts {
			c.Examined += p.Examined
			c.Violations = append(c.Violations, p.Violations...)
			c.puzzles = append(c.puzzles, p.puzzles...)
		}
	}
}

// keepsRules checks the events of one lock by themselves.
func (x *examination) keepsRules(t *tale, c *Check) {
	c.Examined += len(t.events)
	if len(t.events) == 0 {
		return
	}
	r := Rules{Capacity: max(t.capacity, 0), Passed: x.options.Passed, Unfinished: x.options.Unfinished, Clocks: t.newEpoch()}
	if i, err := r.first(t.events); err != nil {
		c.violated(t, err.Error(), nil, &t.events[min(i, len(t.events)-1)])
	}
}

// newEpoch is whether another clock, or another database, may have answered meanwhile.
func (t *tale) newEpoch() bool {
	for _, f := range t.faults {
		if f.Epoch {
			return true
		}
	}
	return false
}

// epochSpan is within what time after it was noted a new epoch begins.
const epochSpan = 10 * time.Second

// shaken is whether a new epoch may have begun between the two.
func (t *tale) shaken(from, to time.Duration) bool {
	for _, f := range t.faults {
		if f.Epoch && f.At <= to && from <= f.At+epochSpan {
			return true
		}
	}
	return false
}

// shaken is whether a new epoch may have begun while the lease lasted.
func (l *lease) shaken(t *tale) bool {
	if !t.newEpoch() {
		return false
	}
	from, to := time.Duration(0), t.last
	if l.of != nil {
		for i, c := range l.of.acquires {
			if i == 0 || c.Sent < from {
				from = c.Sent
			}
		}
	}
	if l.ended != nil && l.ended.Kind == lock.Released {
		for _, c := range l.of.safeReleases() {
			if c.Outcome() == Done {
				to = min(to, c.Answered)
			}
		}
	}
	return t.shaken(from, to)
}

// safeReleases returns the releases of a request that may be nil.
func (r *request) safeReleases() []*Call {
	if r == nil {
		return nil
	}
	return r.releases
}
