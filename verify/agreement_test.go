package verify_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestAnswersThatContradictEventsAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"a lost grant": {byAgreement, func(s editable) { s.removeEvents(of("dan")) },
			"there is no event of the grant: it was lost"},
		"a grant in place of a refusal": {byAgreement, func(s editable) {
			c, g := s.call(verify.Acquire, "bob", 0), s.call(verify.Acquire, "bob", 1).Response.(lock.Grant)
			g.Token = 1 << 40
			c.Response, c.Err = g, nil
		}, "there is no event of the grant: it was lost"},
		"a lost release": {byAgreement,
			func(s editable) { s.removeEvents(is(lock.Released, "ann")) }, "there is no event of it: it was lost"},
		"a stale write without a record": {byAgreement,
			func(s editable) { s.removeEvents(is(lock.Refused, "ann")) }, "the stale token 1 was refused, but there is no event"},
		"a lost revocation": {byAgreement,
			func(s editable) { s.removeEvents(is(lock.Revoked, "dan")) },
			"Token 4 was revoked, but there is no event"},
		"a read of a lost revision": {byAgreement, func(s editable) { s.Events = s.Events[:1] },
			"A read showed the lock at revision"},
		"a grant without a request": {byAgreement,
			func(s editable) { s.event(lock.Granted, "dan").Holder = "unknown" }, "no call requested it"},
		"a grant in another mode": {byAgreement,
			func(s editable) { s.event(lock.Granted, "dan").Mode = lock.Shared }, "but the request was for exclusive"},
		"a grant after a refusal": {byAgreement,
			func(s editable) { refuse(s.call(verify.Acquire, "dan", 0), lock.Error{Code: lock.ErrHeld}) },
			"every answer said that it was not"},
		"a grant after an unavailable answer": {byAgreement,
			func(s editable) { refuse(s.call(verify.Acquire, "dan", 0), lock.Error{Code: lock.ErrUnavailable}) },
			"every answer said that it was not"},
		"a grant with another time": {byAgreement,
			func(s editable) { s.event(lock.Granted, "dan").At = time.Unix(0, 0) }, "but the event says"},
		"a withdrawn grant that was answered": {byAgreement,
			func(s editable) { s.event(lock.Released, "fay").Kind = lock.Withdrawn }, "withdrawn as unclaimed"},
		"a release without a call": {byAgreement,
			func(s editable) { s.event(lock.Expired, "cleo").Kind = lock.Released },
			"was released, but no call did that"},
		"a revocation without a call": {byAgreement,
			func(s editable) { s.event(lock.Expired, "cleo").Kind = lock.Revoked },
			"was revoked, but no call did that"},
		"a release after a refusal": {byAgreement,
			func(s editable) { refuse(s.call(verify.Release, "ann", 0), lock.Error{Code: lock.ErrLeaseLost}) },
			"was released, but no call did that"},
		"a waiter without a request": {byAgreement,
			func(s editable) { s.event(lock.Queued, "fay").Holder = "unknown" },
			"joined the queue, but no call asked"},
		"an end with two kinds": {byAgreement,
			func(s editable) { s.event(lock.Expired, "cleo").Kind = lock.Withdrawn }, "the events disagree"},
		"an end of an unknown lease": {byAgreement, func(s editable) {
			refuse(s.call(verify.Renew, "cleo", 0),
				lock.Error{Code: lock.ErrLeaseLost, Ended: lock.Expired, Token: 77})
		}, "but it never had such a lease"},
		"a read with another time": {byAgreement, func(s editable) {
			changeRead(s, verify.ReadLock, 0, func(l *lock.Lock) { l.ChangedAt = l.ChangedAt.Add(1) })
		}, "but its event says"},
		"a read of a future revision": {byAgreement,
			func(s editable) { changeRead(s, verify.ReadLock, 2, func(l *lock.Lock) { l.Revision = 99 }) },
			"showed the lock at revision 99"},
		"a claim after its timeout": {byAgreement, func(s editable) {
			s.grant(verify.Acquire, "fay", 0, func(g *lock.Grant) { g.AcquiredAt = g.AcquiredAt.Add(3 * time.Second) })
		}, "but the event says"},
	})
}

// changeRead changes the answer of the nth read.
func changeRead(s editable, verb verify.Verb, nth int, change func(*lock.Lock)) {
	s.t.Helper()
	c := s.call(verb, "", nth)
	l := c.Response.(lock.Lock)
	l.Leases = slices.Clone(l.Leases)
	change(&l)
	c.Response = l
}

func TestLeasesThatEndEarlyAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"an early event": {byEarlyEnd, func(s editable) {
			e := s.event(lock.Expired, "cleo")
			e.At = e.At.Add(-time.Second)
		}, "but its holder was promised"},
		"an early lease_lost with the end": {byEarlyEnd, func(s editable) {
			refuse(s.call(verify.Renew, "cleo", 0), lock.Error{Code: lock.ErrLeaseLost, Ended: lock.Expired,
				EndedAt: s.event(lock.Granted, "cleo").At, Token: s.event(lock.Granted, "cleo").Token})
		}, "was told that its lease with token 3 expired at"},
		"an early lease_lost without the end": {byEarlyEnd, func(s editable) {
			s.removeEvents(is(lock.Expired, "cleo"))
			s.grant(verify.Acquire, "cleo", 0, func(g *lock.Grant) { g.ExpiresAt = g.ExpiresAt.Add(10 * time.Second) })
			refuse(s.call(verify.Renew, "cleo", 0), lock.Error{Code: lock.ErrLeaseLost})
		}, "at the latest, that its lease with token 3 is lost"},
		"an end during the promised grace": {byEarlyEnd, func(s editable) {
			s.grant(verify.Acquire, "cleo", 0, func(g *lock.Grant) { g.Grace = time.Minute })
		}, "but its holder was promised"},
	})
}

func TestDuplicateGrantsAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"one token for two locks": {byUniqueness, func(s editable) {
			s.event(lock.Granted, "writer").Token = s.event(lock.Granted, "ann").Token
		}, "Token 1 was granted to"},
		"one token twice for a lock": {byUniqueness, func(s editable) {
			s.event(lock.Granted, "bob").Token = s.event(lock.Granted, "ann").Token
		}, "Token 1 was granted to"},
		"one lease_id granted twice": {byUniqueness, func(s editable) {
			s.event(lock.Granted, "eve").Holder = "dan"
		}, "granted the lock twice"},
		"one lease_id with two tokens": {byUniqueness, func(s editable) {
			s.grant(verify.Acquire, "bob", 2, func(g *lock.Grant) { g.Token = 1000 })
		}, "granted the lock twice"},
	})
}

func TestClientsWithConflictingLeasesAreFound(t *testing.T) {
	longer := func(verb verify.Verb, holder string, nth int) func(editable) {
		return func(s editable) {
			s.grant(verb, holder, nth, func(g *lock.Grant) { g.Until = g.Until.Add(time.Hour) })
		}
	}
	expectAllFound(t, map[string]mutation{
		"an answer with too late an end": {byClients, func(s editable) {
			longer(verify.Acquire, "cleo", 0)(s)
			s.Calls = drop(s.Calls, s.call(verify.Renew, "cleo", 0))
		}, `"dan" counted on the lock`},
		"a reader and a writer": {byClients, func(s editable) {
			longer(verify.Acquire, "reader 2", 0)(s)
			s.Calls = drop(s.Calls, s.call(verify.Release, "reader 2", 0))
		}, `"writer" counted on the lock`},
		"more clients than permits": {byClients, func(s editable) {
			s.Calls = drop(s.Calls, s.call(verify.Release, "first", 0))
			s.grant(verify.Acquire, "third", 1, func(g *lock.Grant) { g.Slot = 3 })
		}, "3 clients counted on 3 permits"},
		"two clients in one slot": {byClients, func(s editable) {
			s.Calls = drop(s.Calls, s.call(verify.Release, "first", 0))
		}, `"third" counted on the lock`},
	})
}

func TestPausedClientsAreNotChecked(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	s := editable{t, &h}
	s.grant(verify.Acquire, "cleo", 0, func(g *lock.Grant) { g.Until = g.Until.Add(time.Hour) })
	for _, c := range h.Check(verify.CheckOptions{PausedClients: []int{s.call(verify.Acquire, "cleo",
		0).Client}}).Checks {
		if c.Name == byClients && len(c.Violations) > 0 {
			t.Errorf("found %+v", c.Violations)
		}
	}
}

// TestDisconnectedWaiterMayHaveReleased: the Go client releases a grant that arrives after its call was
// cancelled while waiting; the recorder does not see that release.
func TestDisconnectedWaiterMayHaveReleased(t *testing.T) {
	t.Parallel()
	expectPasses(t, func(s editable) {
		refuse(s.call(verify.Acquire, "fay", 0), lock.Error{Code: lock.ErrUnknownOutcome})
		s.Calls = drop(s.Calls, s.call(verify.Release, "fay", 0))
	})
}

// TestRecordOfAStaleWriteMayFailInAnOutage: the service records stale writes as well as it can, and refuses them
// anyway.
func TestRecordOfAStaleWriteMayFailInAnOutage(t *testing.T) {
	t.Parallel()
	for code, found := range map[lock.Code]bool{
		lock.ErrHeld: true, lock.ErrUnavailable: false, lock.ErrUnknownOutcome: false,
	} {
		h := copyOf(recordCorrect(t))
		s := editable{t, &h}
		s.removeEvents(is(lock.Refused, "ann"))
		stale := s.call(verify.WriteFenced, "ann", 3)
		other := verify.Call{Client: 99, Verb: verify.ReadLock, Name: exclusiveLock, Sent: stale.Sent, Answered: stale.Answered}
		refuse(&other, lock.Error{Code: code})
		h.Calls = append(h.Calls, other)
		for _, check := range h.Check(verify.CheckOptions{}).Checks {
			got := slices.ContainsFunc(check.Violations, func(v verify.Violation) bool {
				return strings.Contains(v.Message, "the stale token 1 was refused, but there is no event")
			})
			if check.Name == byAgreement && got != found {
				t.Errorf("another call was answered %s: %+v", code, check.Violations)
			}
		}
	}
}
