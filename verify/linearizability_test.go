package verify_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestRefusalsAndRenewalsThatAreNotLinearizableAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"a refusal while the lock is free": {byLinearizable, func(s editable) {
			c := s.call(verify.Acquire, "bob", 0)
			after := s.call(verify.Release, "ann", 0).Answered
			c.Sent, c.Answered = after+1000, after+2000
		}, `lock_held by "ann"`},
		"a refusal that names a non-holder": {byLinearizable, func(s editable) {
			refuse(s.call(verify.Acquire, "bob", 0), lock.Error{Code: lock.ErrHeld, Holder: "unknown"})
		}, `lock_held by "unknown"`},
		"a refusal of a compatible request": {byLinearizable, func(s editable) {
			refuse(s.call(verify.Acquire, "third", 0), lock.Error{Code: lock.ErrHeld, Holder: "first"})
			c := s.call(verify.Acquire, "second", 0)
			before := s.call(verify.Acquire, "third", 0)
			before.Sent, before.Answered = c.Sent-2000, c.Sent-1000
		}, `lock_held by "first"`},
		"a renewal with a wrong end": {byLinearizable, func(s editable) {
			s.grant(verify.Renew, "ann", 0, func(g *lock.Grant) { g.ExpiresAt = g.ExpiresAt.Add(-3 * time.Second) })
		}, "renew"},
		"a renewal after the end": {byLinearizable, func(s editable) {
			c := s.call(verify.Renew, "cleo", 0)
			g := s.call(verify.Acquire, "cleo", 0).Response.(lock.Grant)
			g.ExpiresAt = g.ExpiresAt.Add(2 * time.Second)
			c.Response, c.Err = g, nil
		}, "renew"},
		"lease_lost for a held lease": {byLinearizable, func(s editable) {
			refuse(s.call(verify.Renew, "ann", 0), lock.Error{Code: lock.ErrLeaseLost})
		}, "lease_lost"},
	})
}

func TestReadsAndWritesThatAreNotLinearizableAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"a read with a later end": {byLinearizable, func(s editable) {
			changeRead(s, verify.ReadLock, 1,
				func(l *lock.Lock) { l.Leases[0].ExpiresAt = l.Leases[0].ExpiresAt.Add(1) })
		}, "read"},
		"a read with an extra lease": {byLinearizable, func(s editable) {
			changeRead(s, verify.ReadLock, 3,
				func(l *lock.Lock) { l.Leases = append(l.Leases, lock.LeaseInfo{Slot: 9}) })
		}, "read"},
		"a write under a stale token": {byLinearizable, func(s editable) {
			c := s.call(verify.WriteFenced, "ann", 3)
			c.Err, c.Response = nil, lock.FencedValue{Key: fencedKey, Lock: exclusiveLock, Token: 1, Version: 4}
		}, "write"},
		"an unjustified stale_token": {byLinearizable, func(s editable) {
			refuse(s.call(verify.WriteFenced, "bob", 0), lock.Error{Code: lock.ErrStaleToken})
		}, "stale_token"},
		"an unjustified unknown_token": {byLinearizable, func(s editable) {
			refuse(s.call(verify.WriteFenced, "bob", 0), lock.Error{Code: lock.ErrUnknownToken})
		}, "unknown_token"},
	})
}

func TestGrantsAndRevocationsThatAreNotLinearizableAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"a grant before its request": {byLinearizable, func(s editable) {
			c := s.call(verify.Acquire, "cleo", 0)
			late := s.call(verify.Release, "fay", 0).Answered
			c.Sent, c.Answered = late+1000, late+2000
		}, "cleo"},
		"an unjustified token_mismatch": {byLinearizable, func(s editable) {
			c := s.call(verify.Revoke, "", 0)
			c.Response, c.Err = nil, &lock.Error{Code: lock.ErrTokenMismatch}
			c.Sent = s.call(verify.Acquire, "dan", 0).Answered + 1
			c.Answered = c.Sent + 1
		}, "token_mismatch"},
		"a replay with another end": {byLinearizable, func(s editable) {
			s.grant(verify.Acquire, "bob", 2, func(g *lock.Grant) { g.ExpiresAt = g.ExpiresAt.Add(1) })
		}, "bob"},
		"a grant without an event": {byLinearizable, func(s editable) { s.removeEvents(of("dan")) }, "revoke token 4"},
	})
}

func TestSearchTimeoutIsAViolation(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	r := h.Check(verify.CheckOptions{Timeout: 1})
	if r.OK() {
		t.Error(text(t, r))
	}
}
