package verify

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// CheckOptions relax the checks. The zero value requires everything.
type CheckOptions struct {
	// AllowOvertaking accepts that any waiter is skipped, as the service does with those of a replica that
	// died. A waiter whose client did not get an answer may be skipped in any case.
	AllowOvertaking bool
	// AllowWaiters accepts that calls still wait at the end.
	AllowWaiters bool
	// Restored says that the database was restored to a state from before the first call, without a
	// mark: calls and their events may be lost. Then the History proves only that conflicting leases do
	// not overlap, that tokens grow, and that no token is granted twice.
	Restored bool
	// PausedClients were suspended at times, so they may count on a lease after its end. They are left
	// out of the check of clients' leases.
	PausedClients []int
	// WaitersPerLock is the limit on waiters of one lock; zero skips the check. Use it only if broken
	// connections are visible: a waiter on a hanging connection counts for longer than its client knows.
	WaitersPerLock int
	// Cells says that the service has several cells: tokens of locks in different ones are unique, but not ordered.
	Cells bool
	// Timeout bounds the search for an order of the operations of one lock; zero: DefaultTimeout. A
	// search that does not finish in time is a violation.
	Timeout time.Duration
}

// DefaultTimeout is how long the search for an order of the operations of one lock may take.
const DefaultTimeout = 30 * time.Second

// The names of the checks.
const (
	checkEvents       = "the events of each lock follow the rules"
	checkPlaces       = "no waiter loses its place before its time"
	checkExclusion    = "conflicting leases do not overlap, and tokens grow"
	checkRevival      = "no ended lease is used again"
	checkAgreement    = "answers and events agree"
	checkEarlyEnd     = "no lease ends before its promised end"
	checkSessions     = "leases end with their sessions, not before and not after"
	checkSets         = "sets are granted whole, and their leases end together"
	checkSetOrder     = "sets have the same order at all their locks"
	checkDeadlocks    = "only calls in a circle are refused with deadlock"
	checkCircles      = "circles of waiting calls are broken"
	checkEpochs       = "a fail-over carries over what was promised"
	checkPolicy       = "nothing is granted in a freeze, or outside of a rule"
	checkClosings     = "work that is done is not done again in its period"
	checkTrees        = "leases in a tree exclude those above and below"
	checkFenced       = "fenced writes have consecutive versions and no stale token"
	checkTokenOrder   = "tokens grow over all locks"
	checkUniqueness   = "no token and no lease_id is granted twice"
	checkLinearizable = "all operations are linearizable"
	checkLimit        = "no waiter is refused below the limit"
	checkClients      = "no two clients held conflicting leases by their own clocks"
	checkDeliveries   = "every subscriber received every event once, in order"
	checkPromptness   = "subscribers received events promptly"
	checkBlocking     = "blocking reads returned when the lock changed"
)

// Check compares the answers with the rules of package lock, with each other and with the events.
func (h History) Check(o CheckOptions) Report {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Cells {
		return h.checkCells(o)
	}
	return h.examine(o, func(checker) bool { return true })
}

// examine makes the wanted checks of the history of one database, or of one group.
func (h History) examine(o CheckOptions, wanted func(checker) bool) Report {
	x := &examination{History: h, options: o, locks: h.locks(), subscriptions: h.byCell(), outages: h.outages()}
	x.index = x.newIndex()
	x.epochs = h.findEpochs(x.locks, x.index.proven)
	x.clock = h.clockBounds(x.epochs)
	x.epochs.bound(x.clock)
	for _, t := range x.locks {
		t.epochs = x.epochs
	}
	r := Report{Operations: len(h.Calls), Faults: len(h.Faults), Events: len(h.Events), Locks: len(x.locks),
		faults: h.Faults}
	for _, c := range x.checks() {
		if !wanted(c) {
			continue
		}
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
	// subscriptions are those of the History, one for each cell.
	subscriptions []Subscription
	locks         []*lockHistory
	epochs        epochs
	clock         clockBounds

	outages []outage // in which a stale write may be without an event
	index   *index   // for the checks of subscribers and blocking reads
}

// A checker is one of the checks.
type checker struct {
	name    string
	events  bool // reports whether the check needs the events
	examine func(*Check)
}

func (x *examination) checks() []checker {
	checks := []checker{
		{checkEvents, true, x.each(x.eventRules)},
		{checkPlaces, true, x.each(x.placesLast)},
		{checkExclusion, false, x.each(x.exclusion)},
		{checkRevival, false, x.each(x.noRevival)},
		{checkAgreement, true, x.each(x.agrees)},
		{checkEarlyEnd, false, x.each(x.noEarlyEnd)},
		{checkSessions, false, x.each(x.endsWithSession)},
		{checkSets, true, x.sets},
		{checkSetOrder, true, x.setOrder},
		{checkDeadlocks, true, x.deadlocks},
		{checkCircles, true, x.circles},
		{checkEpochs, true, x.carriedOver},
		{checkTrees, false, x.trees},
		{checkPolicy, true, x.policy},
		{checkClosings, true, x.each(x.closings)},
		{checkFenced, false, x.fenced},
		{checkTokenOrder, false, x.tokenOrder},
		{checkUniqueness, false, x.uniqueness},
		{checkLinearizable, true, x.each(x.linearizable)},
		{checkClients, false, x.each(x.clientsExclude)},
		{checkDeliveries, true, x.deliveries},
		{checkPromptness, true, x.promptness},
		{checkBlocking, true, x.each(x.blockingReads)},
	}
	if x.options.WaitersPerLock > 0 {
		checks = append(checks, checker{checkLimit, false, x.waiterLimit})
	}
	return checks
}

// skipReason returns why a check proves nothing about this History, empty if the check applies.
func (x *examination) skipReason(c checker) string {
	outlives := c.name == checkExclusion || c.name == checkTokenOrder || c.name == checkTrees || c.name == checkUniqueness || c.name == checkClients
	switch {
	case x.options.Restored && !outlives:
		return "the database was restored"
	case c.events && x.Events == nil:
		return "no events were collected"
	}
	return ""
}

// each returns a check of all locks, run in parallel on all processors.
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

// eventRules checks the events of one lock on their own.
func (x *examination) eventRules(t *lockHistory, c *Check) {
	c.Examined += len(t.events)
	if len(t.events) == 0 {
		return
	}
	r := Rules{Capacity: max(t.capacity, 0), AllowOvertaking: x.options.AllowOvertaking,
		AllowWaiters: x.options.AllowWaiters, InSet: t.inSet(), InTree: t.inTree,
		Away: t.away(), Permits: t.permits(), Frozen: x.frozen(t.name), Cells: x.inCells}
	if i, err := r.first(t.events); err != nil {
		c.violated(t, err.Error(), nil, &t.events[min(i, len(t.events)-1)])
	}
}

// frozen returns a function that reports whether a freeze of the lock may have been in force, or the pause of grants
// with which an epoch begins, nil if there was none. A freeze is in force a little before its event, and until a
// little before that of its end.
func (x *examination) frozen(name string) func(time.Time) bool {
	type span struct{ from, to time.Time }
	var spans []span
	for _, e := range x.epochs[1:] { // grants may be paused
		spans = append(spans, span{e.by, later(e.granting, e.by).Add(pauseSlack)})
	}
	freezes := len(spans)
	for _, t := range x.locks {
		if s := lock.Scope(t.name); !s.Covers(name) && !strings.HasPrefix(t.name, name+":") {
			continue
		}
		for _, e := range t.events {
			switch {
			case e.Kind == lock.Frozen && e.Until.IsZero():
				spans = append(spans, span{e.At.Add(-freezeSlack), endless})
			case e.Kind == lock.Frozen:
				spans = append(spans, span{e.At.Add(-freezeSlack), e.Until.Add(freezeSlack)})
			case e.Kind == lock.Thawed && len(spans) > freezes:
				spans[len(spans)-1].to = e.At.Add(freezeSlack)
			}
		}
	}
	if spans == nil {
		return nil
	}
	return func(at time.Time) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return !at.Before(s.from) && at.Before(s.to) })
	}
}

// freezeSlack is by how much a freeze may begin before its event, and by how much waiters may be served after its end.
const freezeSlack = 5 * time.Second

// pauseSlack is how long waiters may be served after the first grant of an epoch.
const pauseSlack = time.Second

// hasSets reports whether the lock was asked for together with others.
func (t *lockHistory) hasSets() bool {
	for _, r := range t.groups {
		if len(r.set) > 0 {
			return true
		}
	}
	return false
}

// inSet returns a function that reports whether a waiter waits for a set.
func (t *lockHistory) inSet() func(lock.Event) bool {
	holders := map[string]bool{}
	for _, r := range t.groups {
		if len(r.set) > 0 {
			holders[r.holder()] = true
		}
	}
	return func(e lock.Event) bool { return holders[e.Holder] }
}

// permits returns a function that returns how many permits the request of an event asks for, by its holder.
func (t *lockHistory) permits() func(lock.Event) int {
	asked := map[string]int{}
	for _, r := range t.groups {
		a, ok := r.acquire()
		if !ok {
			continue
		}
		n := max(a.Locks[0].Permits, 1)
		if before, known := asked[a.Holder]; known && before != n {
			n = 0
		}
		asked[a.Holder] = n
	}
	return func(e lock.Event) int { return asked[e.Holder] }
}

// away returns a function that reports whether a waiter may have been disconnected for a while: a call for it got no
// answer of the service, or lost its place to a later call.
func (t *lockHistory) away() func(lock.Event) bool {
	holders := map[string]bool{}
	for _, r := range t.groups {
		if slices.ContainsFunc(r.acquires, func(c *Call) bool { return c.Outcome() != Done }) {
			holders[r.holder()] = true
		}
	}
	return func(e lock.Event) bool { return holders[e.Holder] }
}

// releaseCalls returns the releases of a group that may be nil, and the calls that may have closed its session.
func (r *callGroup) releaseCalls() []*Call {
	if r == nil {
		return nil
	}
	if r.closes == nil {
		return r.releases
	}
	return slices.Concat(r.releases, r.closes)
}
