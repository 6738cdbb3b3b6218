package verify_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// useSession lets gus hold a lock in a session, which is renewed once and then expires.
func (c *harness) useSession() {
	c.t.Helper()
	id := lock.SessionID{1}
	_, err := c.client("gus").OpenSession(c.t.Context(), lock.OpenSession{ID: id, Holder: "gus", TTL: 5 * time.Second})
	c.want(nil, err)
	g, err := c.client("gus").Acquire(c.t.Context(), lock.Acquire{Locks: lock.One(sessionLock), LeaseID: c.id("gus"), Holder: "gus", SessionID: id})
	c.want(nil, err)
	c.note("gus", g)
	_, err = c.client("gus").RenewSession(c.t.Context(), lock.RenewSession{ID: id})
	c.want(nil, err)
	c.read(sessionLock)
	c.verify("gus")
	_, err = c.client("the operator").Revoke(c.t.Context(),
		lock.Revoke{Name: sessionLock, Token: g.Token, AcquiredAt: g.AcquiredAt.Add(-1), Reason: "no reason"})
	c.want(lock.ErrTokenMismatch, err)
	_, err = c.client("gus").Renew(c.t.Context(), lock.Renew{Locks: []string{sessionLock}, LeaseID: c.id("gus")})
	c.want(nil, err)
	time.Sleep(6 * time.Second)
	c.read(sessionLock)
	_, err = c.client("gus").RenewSession(c.t.Context(), lock.RenewSession{ID: id})
	c.want(lock.ErrSessionLost, err)
	c.acquire("hal", nil, lock.Acquire{Locks: lock.One(sessionLock)})
	c.release("hal")
	c.poll()
}

// last returns the last call with that verb that the condition selects.
func (s editable) last(verb verify.Verb, selects func(*verify.Call) bool) *verify.Call {
	s.t.Helper()
	for i := len(s.Calls) - 1; i >= 0; i-- {
		if c := &s.Calls[i]; c.Verb == verb && selects(c) {
			return c
		}
	}
	s.t.Fatalf("no such %s was recorded", verb)
	return nil
}

func isDone(c *verify.Call) bool { return c.Outcome() == verify.Done }

func TestLeasesThatDoNotEndWithTheirSessionsAreFound(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"a heartbeat promises a later end": {bySessions, func(s editable) {
			c := s.last(verify.RenewSession, isDone)
			g := c.Response.(lock.SessionGrant)
			g.ExpiresAt = g.ExpiresAt.Add(time.Second)
			c.Response = g
		}, "but its session was extended to"},
		"a heartbeat after the end is answered": {bySessions, func(s editable) {
			c, before := s.last(verify.RenewSession, func(*verify.Call) bool { return true }), s.last(verify.RenewSession, isDone)
			g := before.Response.(lock.SessionGrant)
			g.ExpiresAt = g.ExpiresAt.Add(c.Sent - before.Sent)
			c.Response, c.Err = g, nil
		}, "but its session was extended to"},
		"a read shows the lease after the end": {bySessions, func(s editable) {
			shown := s.last(verify.ReadLock, func(c *verify.Call) bool {
				l := c.Response.(lock.Lock)
				return c.Name == sessionLock && len(l.Leases) == 1
			})
			l := shown.Response.(lock.Lock)
			l.AsOf = l.AsOf.Add(10 * time.Second)
			shown.Response = l
		}, "but its session ended at"},
		"a verification finds the token current after the end": {bySessions, func(s editable) {
			c := s.last(verify.VerifyToken, isDone)
			v := c.Response.(lock.Verification)
			v.CheckedAt = v.CheckedAt.Add(10 * time.Second)
			c.Response = v
		}, "but its session ended at"},
		"the lease is used after the session was lost": {bySessions, func(s editable) {
			renewed, lost := s.last(verify.Renew, func(c *verify.Call) bool { return c.Name == sessionLock }),
				s.last(verify.RenewSession, func(c *verify.Call) bool { return !isDone(c) })
			renewed.Sent, renewed.Answered = lost.Answered+1000, lost.Answered+2000
		}, "was reported lost, but the lease was used later"},
	})
}

// TestAClaimMayMoveTheStartOfALease: a revocation that names its former start is refused.
func TestAClaimMayMoveTheStartOfALease(t *testing.T) {
	t.Parallel()
	h := copyOf(recordCorrect(t))
	s := editable{t, &h}
	refused := s.last(verify.Revoke, func(c *verify.Call) bool { return c.Name == sessionLock })
	r := refused.Request.(lock.Revoke)
	r.AcquiredAt = s.event(lock.Granted, "gus").At
	refused.Request = r
	if report := h.Check(verify.CheckOptions{}); !report.OK() {
		t.Error(text(t, report))
	}
	r.AcquiredAt = time.Time{}
	refused.Request = r
	if h.Check(verify.CheckOptions{}).OK() {
		t.Error("a refusal of a revocation that names no start was not found")
	}
}
