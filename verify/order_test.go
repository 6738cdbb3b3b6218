package verify_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestRefusalsAndRenewalsThatFitNowhereAreFound(t *testing.T) {
	expectAllFound(t, map[string]spoiling{
		"a refusal while nobody has the lock": {byOrder, func(s script) {
			c := s.call(verify.Acquire, "bob", 0)
			after := s.call(verify.Release, "ann", 0).Answered
			c.Sent, c.Answered = after+1000, after+2000
		}, `lock_held by "ann"`},
		"a refusal by who never had it": {byOrder, func(s script) {
			refuses(s.call(verify.Acquire, "bob", 0), lock.Error{Code: lock.ErrHeld, Holder: "nobody"})
		}, `lock_held by "nobody"`},
		"a refusal of who fits beside the others": {byOrder, func(s script) {
			refuses(s.call(verify.Acquire, "third", 0), lock.Error{Code: lock.ErrHeld, Holder: "first"})
			c := s.call(verify.Acquire, "second", 0)
			before := s.call(verify.Acquire, "third", 0)
			before.Sent, before.Answered = c.Sent-2000, c.Sent-1000
		}, `lock_held by "first"`},
		"a renewal to a wrong end": {byOrder, func(s script) {
			s.grant(verify.Renew, "ann", 0, func(g *lock.Grant) { g.ExpiresAt = g.ExpiresAt.Add(-3 * time.Second) })
		}, "renew"},
		"a renewal that revives": {byOrder, func(s script) {
			c := s.call(verify.Renew, "cleo", 0)
			g := s.call(verify.Acquire, "cleo", 0).Response.(lock.Grant)
			g.ExpiresAt = g.ExpiresAt.Add(2 * time.Second)
			c.Response, c.Err = g, nil
		}, "renew"},
		"a loss of what is not lost": {byOrder, func(s script) {
			refuses(s.call(verify.Renew, "ann", 0), lock.Error{Code: lock.ErrLeaseLost})
		}, "lease_lost"},
	})
}

func TestLooksAndWritesThatFitNowhereAreFound(t *testing.T) {
	expectAllFound(t, map[string]spoiling{
		"a look at the past": {byOrder, func(s script) {
			c := s.call(verify.ReadLock, "", 0)
			after := s.call(verify.Acquire, "bob", 1).Answered
			c.Sent, c.Answered = after+1000, after+2000
		}, "look"},
		"a look that shows too long a lease": {byOrder, func(s script) {
			at(s, verify.ReadLock, 1, func(l *lock.Lock) { l.Leases[0].ExpiresAt = l.Leases[0].ExpiresAt.Add(1) })
		}, "look"},
		"a look that shows nobody": {byOrder, func(s script) {
			at(s, verify.ReadLock, 1, func(l *lock.Lock) { l.Leases, l.State = nil, lock.Free })
		}, "look"},
		"a look that shows one more": {byOrder, func(s script) {
			at(s, verify.ReadLock, 3, func(l *lock.Lock) { l.Leases = append(l.Leases, lock.LeaseInfo{Slot: 9}) })
		}, "look"},
		"a verdict that is wrong": {byOrder, func(s script) {
			c := s.call(verify.VerifyToken, "", 0)
			v := c.Response.(lock.Verification)
			v.Status = lock.Ended
			c.Response = v
		}, "verify"},
		"a write under a token that was not the newest": {byOrder, func(s script) {
			c := s.call(verify.WriteFenced, "ann", 3)
			c.Err, c.Response = nil, lock.FencedValue{Key: account, Lock: alone, Token: 1, Version: 4}
		}, "write"},
		"a write that was refused for nothing": {byOrder, func(s script) {
			refuses(s.call(verify.WriteFenced, "bob", 0), lock.Error{Code: lock.ErrStaleToken})
		}, "stale_token"},
		"a token that is said to be unknown": {byOrder, func(s script) {
			refuses(s.call(verify.WriteFenced, "bob", 0), lock.Error{Code: lock.ErrUnknownToken})
		}, "unknown_token"},
	})
}

func TestGrantsAndRevocationsThatFitNowhereAreFound(t *testing.T) {
	expectAllFound(t, map[string]spoiling{
		"a grant before it was asked for": {byOrder, func(s script) {
			c := s.call(verify.Acquire, "cleo", 0)
			late := s.call(verify.Release, "fay", 0).Answered
			c.Sent, c.Answered = late+1000, late+2000
		}, "cleo"},
		"a revocation of what is not there": {byOrder, func(s script) {
			c := s.call(verify.Revoke, "", 0)
			c.Response, c.Err = nil, &lock.Error{Code: lock.ErrTokenMismatch}
			c.Sent = s.call(verify.Acquire, "dan", 0).Answered + 1
			c.Answered = c.Sent + 1
		}, "token_mismatch"},
		"a replay with another end": {byOrder, func(s script) {
			s.grant(verify.Acquire, "bob", 2, func(g *lock.Grant) { g.ExpiresAt = g.ExpiresAt.Add(1) })
		}, "bob"},
		"a grant of which no event tells": {byOrder, func(s script) { s.forget(of("dan")) }, "revoke token 4"},
	})
}

func TestAnOrderThatIsNotFoundInTimeIsAViolation(t *testing.T) {
	t.Parallel()
	h := play(t)
	r := h.Check(verify.CheckOptions{Timeout: 1})
	if r.OK() {
		t.Error(text(t, r))
	}
}
