package verify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestCorrectHistoryPasses(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	r := h.Check(verify.CheckOptions{})
	if !r.OK() {
		t.Error(text(t, r))
	}
	for _, c := range r.Checks {
		if c.Examined == 0 && c.Name != byEpochs {
			t.Errorf("%s: no cases", c.Name)
		}
	}
	if r.Operations != len(h.Calls) || r.Events != len(h.Events) || r.Locks != 20 {
		t.Errorf("there were %d operations, %d events and %d locks", r.Operations, r.Events, r.Locks)
	}
}

// expectPasses changes the recorded history, and checks that it is still accepted.
func expectPasses(t *testing.T, change func(editable)) {
	t.Helper()
	h := copyOf(recordCorrect(t))
	change(editable{t, &h})
	if r := h.Check(verify.CheckOptions{}); !r.OK() {
		t.Error(text(t, r))
	}
}

func text(t *testing.T, r verify.Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A mutation changes a correct history so that one check must fail.
type mutation struct {
	check string // that must find it
	apply func(editable)
	want  string // part of the violation's message
}

const (
	byEvents       = "the events of each lock follow the rules"
	byPlaces       = "no waiter loses its place before its time"
	byExclusion    = "conflicting leases do not overlap, and tokens grow"
	byRevival      = "no ended lease is used again"
	byAgreement    = "answers and events agree"
	byEarlyEnd     = "no lease ends before its promised end"
	byFenced       = "fenced writes have consecutive versions and no stale token"
	byTokenOrder   = "tokens grow over all locks"
	byUniqueness   = "no token and no lease_id is granted twice"
	byLinearizable = "all operations are linearizable"
	byClients      = "no two clients held conflicting leases by their own clocks"
	byDeliveries   = "every subscriber received every event once, in order"
	byPromptness   = "subscribers received events promptly"
	bySets         = "sets are granted whole, and their leases end together"
	byEpochs       = "a fail-over carries over what was promised"
	byPolicy       = "nothing is granted in a freeze, or outside of a rule"
	byClosings     = "work that is done is not done again in its period"
	byTrees        = "leases in a tree exclude those above and below"
	bySetOrder     = "sets have the same order at all their locks"
	byDeadlocks    = "only calls in a circle are refused with deadlock"
	byCircles      = "circles of waiting calls are broken"
	bySessions     = "leases end with their sessions, not before and not after"
	byBlocking     = "blocking reads returned when the lock changed"
)

// maxShownCalls is the most calls that a violation may show.
const maxShownCalls = 20

// expectFound checks that the check finds the violation, and that none is shown with many calls.
func expectFound(t *testing.T, base verify.History, c mutation) {
	t.Helper()
	h := copyOf(base)
	c.apply(editable{t, &h})
	r := h.Check(verify.CheckOptions{})
	found := false
	for _, check := range r.Checks {
		for _, v := range check.Violations {
			found = found || check.Name == c.check && strings.Contains(v.Message, c.want)
			if len(v.Calls) > maxShownCalls {
				t.Errorf("%q shows %d calls: %s", check.Name, len(v.Calls), v.Message)
			}
		}
	}
	if found {
		return
	}
	t.Errorf("%q does not say %q:\n%s", c.check, c.want, text(t, r))
}

func expectAllFound(t *testing.T, cases map[string]mutation) {
	t.Parallel()
	base := recordCorrect(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectFound(t, base, c)
		})
	}
}

func is(kind lock.Kind, holder string) func(lock.Event) bool {
	return func(e lock.Event) bool { return e.Kind == kind && e.Holder == holder }
}

func of(holder string) func(lock.Event) bool {
	return func(e lock.Event) bool { return e.Holder == holder }
}

func TestEventsThatBreakTheRulesAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"an event is missing": {byEvents, func(s editable) {
			e := s.event(lock.Expired, "cleo")
			*e = s.Events[len(s.Events)-1]
		}, "the revision does not follow"},
		"a request waits at the end": {byEvents, func(s editable) {
			s.removeEvents(func(e lock.Event) bool { return of("fay")(e) && e.Kind != lock.Queued })
		},
			"still wait"},
	})
}

func TestOverlappingLeasesAreFound(t *testing.T) {
	earlier := func(holder string, d time.Duration) func(editable) {
		return func(s editable) {
			s.grant(verify.Acquire, holder, 0, func(g *lock.Grant) { g.AcquiredAt = g.AcquiredAt.Add(-d) })
			e := s.event(lock.Granted, holder)
			e.At = e.At.Add(-d)
		}
	}
	expectAllFound(t, map[string]mutation{
		"one is granted while another lasts": {byExclusion, earlier("cleo", 200*time.Millisecond),
			`while "bob" held it`},
		"one is granted during the grace of another": {byExclusion, func(s editable) {
			s.grant(verify.Acquire, "cleo", 0, func(g *lock.Grant) { g.Grace = 3 * time.Second })
		}, `while "cleo" held it`},
		"a writer is granted the lock beside a reader": {byExclusion, earlier("writer", 150*time.Millisecond),
			`while "reader 2" held it`},
		"more permits than the capacity": {byExclusion, func(s editable) {
			s.removeEvents(is(lock.Released, "first"))
			s.Calls = drop(s.Calls, s.call(verify.Release, "first", 0))
			s.grant(verify.Acquire, "third", 1, func(g *lock.Grant) { g.Slot = 3 })
			s.event(lock.Granted, "third").Slot, s.event(lock.Released, "third").Slot = 3, 3
		}, "3 permits were held"},
		"two leases in one slot": {byExclusion, func(s editable) {
			s.removeEvents(is(lock.Released, "first"))
			s.Calls = drop(s.Calls, s.call(verify.Release, "first", 0))
		}, `while "first" held it`},
		"the later lease has the smaller token": {byExclusion, func(s editable) {
			swap(s, "ann", "bob")
		}, "is not greater than"},
	})
}

func drop(calls []verify.Call, c *verify.Call) []verify.Call {
	var left []verify.Call
	for _, o := range calls {
		if o.ID != c.ID {
			left = append(left, o)
		}
	}
	return left
}

// swap exchanges the tokens of two leases in all answers and events.
func swap(s editable, a, b string) {
	x, y := s.event(lock.Granted, a).Token, s.event(lock.Granted, b).Token
	other := map[lock.Token]lock.Token{x: y, y: x}
	for i := range s.Events {
		if t, ok := other[s.Events[i].Token]; ok {
			s.Events[i].Token = t
		}
	}
	for i := range s.Calls {
		if g, ok := s.Calls[i].Response.(lock.Grant); ok && other[g.Token] != 0 {
			g.Token = other[g.Token]
			s.Calls[i].Response = g
		}
	}
}

func TestRevivedLeasesAreFound(t *testing.T) {
	revived := func(s editable, holder string) {
		c := s.call(verify.Renew, holder, 0)
		g := s.call(verify.Acquire, holder, 0).Response.(lock.Grant)
		g.ExpiresAt = g.AcquiredAt.Add(c.Sent - s.call(verify.Acquire, holder, 0).Sent + g.TTL)
		c.Response, c.Err = g, nil
	}
	expectAllFound(t, map[string]mutation{
		"a renewal after the end event": {byRevival, func(s editable) { revived(s, "cleo") }, "had ended at"},
		"a renewal after the lease was reported lost": {byRevival, func(s editable) {
			revived(s, "cleo")
			c := *s.call(verify.Renew, "cleo", 0)
			c.ID, c.Sent, c.Answered = len(s.Calls), c.Sent-2000, c.Sent-1000
			refuse(&c, lock.Error{Code: lock.ErrLeaseLost})
			s.Calls = append(s.Calls, c)
		}, "was reported lost"},
		"a renewal after a read without the lease": {byRevival, func(s editable) {
			look := s.call(verify.ReadLock, "", 2)
			renew := s.call(verify.Renew, "cleo", 0)
			revived(s, "cleo")
			renew.Sent, renew.Answered = look.Answered+1000, look.Answered+2000
		}, "was missing from a read"},
		"a renewal after a conflicting grant": {byRevival, func(s editable) {
			revived(s, "dan")
			c := s.call(verify.Renew, "dan", 0)
			after := s.call(verify.Acquire, "eve", 0).Answered
			c.Sent, c.Answered = after+1000, after+2000
		}, "was followed by a conflicting one"},
		"a read that shows a released lease": {byRevival, func(s editable) {
			look := s.call(verify.ReadLock, "", 0)
			after := s.call(verify.Release, "ann", 0).Answered
			look.Sent, look.Answered = after+1000, after+2000
		}, "was released, but was used again"},
	})
}
