package verify

import (
	"runtime"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// CheckOptions say what a History need not prove. The zero value demands all.
type CheckOptions struct {
	// AllowOvertaking allows that waiters are passed over, as those are at whose places no call
	// waits: whenever a client goes away, or a replica dies.
	AllowOvertaking bool
	// AllowWaiters allows that somebody still waits at the end.
	AllowWaiters bool
	// Restored allows that the database was put back to a state from before the first call, without
	// a mark: calls and their events may be lost. Then the History proves only that leases which
	// conflict do not overlap, that tokens grow, and that no token is granted twice.
	Restored bool
	// PausedClients are clients that were stopped at times, and so may believe for longer in a
	// lease than it lasts. What they believe is not looked at.
	PausedClients []int
	// WaitersPerLock is how many may wait for one lock; zero: that is not checked. It is for a
	// load whose connections end visibly: a waiter on a connection that hangs may be counted
	// for longer than its client knows.
	WaitersPerLock int
	// Timeout is for how long to look for an order of the operations of one lock; zero:
	// UsualTimeout. An order that is not found in time is a violation.
	Timeout time.Duration
}

// DefaultTimeout is for how long an order of the operations of one lock is looked for.
const DefaultTimeout = 30 * time.Second

// The names of the checks.
const (
	checkEvents       = "the events of each lock keep its rules"
	checkExclusion    = "leases that conflict do not overlap, and tokens grow"
	checkRevival      = "no lease that was over comes back"
	checkAgreement    = "answers and events tell the same"
	checkEarlyEnd     = "no lease ends before it was said to"
	checkFenced       = "fenced writes follow one another"
	checkUniqueness   = "nothing is done twice"
	checkLinearizable = "all could have happened one after the other, by the rules"
	checkLimit        = "no call is refused to wait while there is room"
	checkClients      = "no two clients believed at once that the lock was theirs"
	checkDeliveries   = "every subscriber was told every event, once and in order"
	checkPromptness   = "subscribers were told promptly"
	checkBlocking     = "blocking reads returned when the lock changed"
)

// Check holds what was answered against the rules of package lock, against itself and
// against the events.
func (h History) Check(o CheckOptions) Report {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	x := &examination{History: h, options: o, locks: h.locks(), clock: h.clockBounds()}
	x.index = x.newIndex()
	r := Report{Operations: len(h.Calls), Faults: len(h.Faults), Events: len(h.Events), Locks: len(x.locks), faults: h.Faults}
	for _, c := range x.checks() {
		check := Check{Name: c.name, Skipped: x.skipReason(c)}
		if check.Skipped == "" {
			c.examine(&check)
		}
		r.Checks = append(r.Checks, check)
	}
	r.visualization = x.visualization(r)
	return r
}

// An examination is a History while it is checked.
type examination struct {
	History
	options CheckOptions
	locks   []*lockHistory
	clock   clockBounds

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
		{checkEvents, true, x.each(x.eventRules)},
		{checkExclusion, false, x.each(x.exclusion)},
		{checkRevival, false, x.each(x.noRevival)},
		{checkAgreement, true, x.each(x.agrees)},
		{checkEarlyEnd, false, x.each(x.noEarlyEnd)},
		{checkFenced, false, x.fenced},
		{checkUniqueness, false, x.uniqueness},
		{checkLinearizable, true, x.each(x.linearizable)},
		{checkClients, false, x.each(x.clientsExclude)},
		{checkDeliveries, true, x.deliveries},
		{checkPromptness, true, x.promptness},
		{checkBlocking, true, x.each(x.blockingReads)},
	}
	if x.options.WaitersPerLock > 0 {
		checks = append(checks, checker{checkLimit, false, x.each(x.waiterLimit)})
	}
	return checks
}

// skipReason returns why a check proves nothing about this History, empty if it proves something.
func (x *examination) skipReason(c checker) string {
	outlives := c.name == checkExclusion || c.name == checkUniqueness || c.name == checkClients
	switch {
	case x.options.Restored && !outlives:
		return "the database was restored"
	case c.events && x.Events == nil:
		return "no events were collected"
	}
	return ""
}

// each returns a check of all locks, by as many at a time as there are processors.
func (x *examination) each(one func(*lockHistory, *Check)) func(*Check) {
	return func(c *Check) {
		parts := make([]Check, len(x.locks))
		var all sync.WaitGroup
		free := make(chan struct{}, runtime.GOMAXPROCS(0))
		for i, t := range x.locks {
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
			c.counterexamples = append(c.counterexamples, p.counterexamples...)
		}
	}
}

// eventRules checks the events of one lock by themselves.
func (x *examination) eventRules(t *lockHistory, c *Check) {
	c.Examined += len(t.events)
	if len(t.events) == 0 {
		return
	}
	r := Rules{Capacity: max(t.capacity, 0), AllowOvertaking: x.options.AllowOvertaking, AllowWaiters: x.options.AllowWaiters, AllowClockJumps: t.hasEpoch()}
	if i, err := r.first(t.events); err != nil {
		c.violated(t, err.Error(), nil, &t.events[min(i, len(t.events)-1)])
	}
}

// hasEpoch is whether another clock, or another database, may have answered meanwhile.
func (t *lockHistory) hasEpoch() bool {
	for _, f := range t.faults {
		if f.Epoch {
			return true
		}
	}
	return false
}

// epochSpan is within what time after it was noted a new epoch begins.
const epochSpan = 10 * time.Second

// crossesEpoch is whether a new epoch may have begun between the two.
func (t *lockHistory) crossesEpoch(from, to time.Duration) bool {
	for _, f := range t.faults {
		if f.Epoch && f.At <= to && from <= f.At+epochSpan {
			return true
		}
	}
	return false
}

// crossesEpoch is whether a new epoch may have begun while the lease lasted.
func (l *lease) crossesEpoch(t *lockHistory) bool {
	if !t.hasEpoch() {
		return false
	}
	from, to := time.Duration(0), t.last
	if l.group != nil {
		for i, c := range l.group.acquires {
			if i == 0 || c.Sent < from {
				from = c.Sent
			}
		}
	}
	if l.ended != nil && l.ended.Kind == lock.Released {
		for _, c := range l.group.releaseCalls() {
			if c.Outcome() == Done {
				to = min(to, c.Answered)
			}
		}
	}
	return t.crossesEpoch(from, to)
}

// releaseCalls returns the releases of a request that may be nil.
func (r *callGroup) releaseCalls() []*Call {
	if r == nil {
		return nil
	}
	return r.releases
}
