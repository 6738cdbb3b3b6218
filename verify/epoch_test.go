package verify_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// recordWithClockSetBack records a history in which another clock, an hour behind, answers from some
// time on. It returns the history and that time on the recorder's clock.
func recordWithClockSetBack(t *testing.T) (verify.History, time.Duration) {
	t.Helper()
	h := recordCorrect(t)
	s := editable{t, &h}
	from := s.event(lock.Granted, "cleo").At
	move := func(at *time.Time) {
		if !at.Before(from) {
			*at = at.Add(-time.Hour)
		}
	}
	for i := range h.Events {
		move(&h.Events[i].At)
	}
	for i := range h.Calls {
		moveAnswer(&h.Calls[i], move)
	}
	s.syncDeliveries()
	return h, s.call(verify.Acquire, "cleo", 0).Sent - 1
}

func moveAnswer(c *verify.Call, move func(*time.Time)) {
	switch got := c.Response.(type) {
	case lock.Grant:
		got.Leases = slices.Clone(got.Leases)
		moveLease(&got.Lease, move)
		for i := range got.Leases {
			moveLease(&got.Leases[i], move)
		}
		c.Response = got
	case lock.Lock:
		got.Leases = slices.Clone(got.Leases)
		for i := range got.Leases {
			l := &got.Leases[i]
			from := l.AcquiredAt
			move(&l.AcquiredAt)
			l.ExpiresAt = l.ExpiresAt.Add(l.AcquiredAt.Sub(from))
		}
		move(&got.AsOf)
		move(&got.ChangedAt)
		c.Response = got
	case lock.Verification:
		move(&got.CheckedAt)
		c.Response = got
	case lock.FencedValue:
		move(&got.WrittenAt)
		c.Response = got
	}
	var e *lock.Error
	if errors.As(c.Err, &e) {
		moved := *e
		move(&moved.EndedAt)
		c.Err = &moved
	}
}

func moveLease(l *lock.Lease, move func(*time.Time)) {
	from := l.AcquiredAt
	move(&l.AcquiredAt)
	l.ExpiresAt = l.ExpiresAt.Add(l.AcquiredAt.Sub(from))
}

func TestClockChangeIsAcceptedWithAnEpoch(t *testing.T) {
	t.Parallel()
	h, at := recordWithClockSetBack(t)
	if r := h.Check(verify.CheckOptions{}); r.OK() {
		t.Errorf("a clock set back was not found:\n%s", text(t, r))
	}
	h.Faults = []verify.Fault{{Description: "the clock was set back", At: at, Epoch: true}}
	if r := h.Check(verify.CheckOptions{}); !r.OK() {
		t.Error(text(t, r))
	}
}

func TestLeasesMayEndEarlyAfterAFailOver(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	s := editable{t, &h}
	s.event(lock.Expired, "cleo").At = s.event(lock.Expired, "cleo").At.Add(-500 * time.Millisecond)
	s.syncDeliveries()
	refuse(s.call(verify.Renew, "cleo", 0), lock.Error{Code: lock.ErrLeaseLost, Ended: lock.Expired,
		EndedAt: s.event(lock.Expired, "cleo").At, Token: s.event(lock.Expired, "cleo").Token})
	changeRead(s, verify.ReadLock, 2, func(l *lock.Lock) { l.ChangedAt = s.event(lock.Expired, "cleo").At })
	if r := h.Check(verify.CheckOptions{}); r.OK() {
		t.Error("a lease that ended early was not found")
	}
	h.Faults = []verify.Fault{{Description: "fail-over", At: s.call(verify.Acquire, "cleo", 0).Answered, Epoch: true}}
	if r := h.Check(verify.CheckOptions{}); !r.OK() {
		t.Error(text(t, r))
	}
}

func TestLossesOfAFailOverAreFound(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	s := editable{t, &h}
	h.Faults = []verify.Fault{{Description: "fail-over", At: s.call(verify.Acquire, "eve", 0).Answered, Epoch: true}}
	expectFound(t, h, mutation{byAgreement, func(s editable) { s.removeEvents(of("eve")) }, "it was lost"})
	expectFound(t, h,
		mutation{byAgreement, func(s editable) { s.removeEvents(is(lock.Released, "eve")) }, "it was lost"})
	expectFound(t, h, mutation{byUniqueness, func(s editable) {
		s.event(lock.Granted, "fay").Token = s.event(lock.Granted, "eve").Token
	}, "was granted to"})
}

func TestRestoreMayLoseGrantsButNotRepeatTokens(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	s := editable{t, &h}
	s.removeEvents(of("eve"))
	if r := h.Check(verify.CheckOptions{}); r.OK() {
		t.Error("a lost grant passes without a restore")
	}
	restored := verify.CheckOptions{Restored: true}
	if r := h.Check(restored); !r.OK() {
		t.Error(text(t, r))
	}
	again := s.call(verify.Acquire, "fay", 0)
	g := again.Response.(lock.Grant)
	g.Token = s.call(verify.Acquire, "eve", 0).Response.(lock.Grant).Token
	again.Response = g
	if r := h.Check(restored); r.OK() {
		t.Error("a token granted twice passes after a restore")
	}
}
