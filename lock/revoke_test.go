package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// testGrace is that of the leases in these tests.
const testGrace = 5 * time.Second

func withGrace(a *lock.Acquire) { a.Grace = testGrace }

func revokeSkippingGrace(token lock.Token) lock.Revoke {
	r := revoke(token, nil)
	r.SkipGrace = true
	return r
}

func TestARevocationLetsTheGraceRunOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before time.Duration // after the grant, of a lease of 10 s
		cmd    lock.Revoke
		left   time.Duration // after the revocation; zero: the lock is free at once
	}{
		{"of a held lease, from the revocation on", 3 * time.Second, revoke(1, nil), testGrace},
		{"at the last instant of the TTL", 10*time.Second - 1, revoke(1, nil), testGrace},
		{"at the end of the TTL", 10 * time.Second, revoke(1, nil), testGrace},
		{"in the grace, what is left of it", 12 * time.Second, revoke(1, nil), 3 * time.Second},
		{"unless the revocation skips it", 3 * time.Second, revokeSkippingGrace(1), 0},
		{"unless the revocation skips what is left of it", 12 * time.Second, revokeSkippingGrace(1), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newModel(t)
			w.must(acquire(1, withGrace))
			w.advance(c.before)
			d := w.must(c.cmd)
			l := w.record.Lock(w.now)
			if kinds(d) != "revoked " || l.NextChangeAt().IsZero() != (c.left == 0) {
				t.Errorf("decided %v and turns at %v", kinds(d), l.NextChangeAt())
			}
			if c.left > 0 {
				if l.State != lock.InGrace || len(l.Leases) != 1 || !l.Leases[0].Revoked || l.Leases[0].Remaining != 0 || !d.Due.Equal(w.now.Add(c.left)) {
					t.Errorf("the lock is %+v, due %v", l, d.Due)
				}
				w.advance(c.left - 1)
				if e := w.refused(acquire(2), lock.ErrHeld); e.RetryAfter != 1 || e.Holder != "worker" {
					t.Errorf("refused with %+v", e)
				}
				w.advance(1)
			}
			if l := w.record.Lock(w.now); l.State != lock.Free || len(l.Leases) != 0 {
				t.Errorf("after the grace the lock is %+v", l)
			}
			if d := w.must(acquire(2)); kinds(d) != "granted " || d.Grant.Token != 2 {
				t.Errorf("decided %v, %+v", kinds(d), d.Grant)
			}
		})
	}
}

func TestTheHolderOfARevokedLeaseIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for name, cmd := range map[string]lock.Command{
		"a renewal": renew(1), "a release": release(1), "the acquire again": acquire(1, withGrace),
		"an acquire that waits": lock.Acquire{Name: name, LeaseID: id(1), Holder: "worker", Mode: lock.Exclusive, TTL: time.Second, Wait: time.Second, Attachment: 9, Replica: 1},
		"a claim":               lock.Claim{Name: name, LeaseID: id(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newModel(t)
			w.must(acquire(1, withGrace))
			w.advance(time.Second)
			w.must(revoke(1, nil))
			revoked := w.now
			for _, after := range []time.Duration{0, testGrace - 1, 1, time.Hour} {
				w.advance(after)
				e := w.refused(cmd, lock.ErrLeaseLost)
				if e.Ended != lock.Revoked || e.Reason != "maintenance" || e.Token != 1 || !e.EndedAt.Equal(revoked) {
					t.Errorf("refused with %+v", e)
				}
			}
		})
	}
}

func TestTheTokenOfARevokedLeaseHasEnded(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, withGrace))
	w.must(revoke(1, nil))
	verify := lock.Verify{Name: name, Token: 1}
	if v := verify.Check(w.record, w.now); v.Status != lock.Ended || v.Remaining != 0 {
		t.Errorf("the verdict is %+v", v)
	}
	if newest, err := (lock.FencedWrite{Lock: name, Token: 1}).Newest(w.record, w.now); newest != 1 || err != nil {
		t.Errorf("a fenced write must have token %d, %v", newest, err)
	}
}

func TestASecondRevocation(t *testing.T) {
	t.Parallel()
	t.Run("changes nothing and succeeds", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, withGrace))
		w.must(revoke(1, nil))
		w.advance(time.Second)
		if d := w.must(revoke(1, nil)); d.Changed || !d.Due.Equal(w.now.Add(testGrace-time.Second)) {
			t.Errorf("decided %+v", d)
		}
		w.advance(testGrace)
		w.must(revoke(1, nil))
	})
	t.Run("skips the rest of the grace if it says so, with an event of its own", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, withGrace))
		w.enqueue(2)
		w.must(revoke(1, nil))
		revoked := w.now
		w.advance(time.Second)
		again := revokeSkippingGrace(1)
		again.Reason = "the host is off"
		d := w.must(again)
		w.expect("2 |")
		if kinds(d) != "revoked granted " || d.Events[0].Reason != again.Reason || d.Events[0].Ref != 0 {
			t.Errorf("decided %+v", d.Events)
		}
		if e := w.refused(renew(1), lock.ErrLeaseLost); e.Reason != "maintenance" || !e.EndedAt.Equal(revoked) {
			t.Errorf("the holder is refused with %+v", e)
		}
		w.refused(again, lock.ErrTokenMismatch)
	})
	t.Run("that skips the grace succeeds again", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, withGrace))
		w.must(revokeSkippingGrace(1))
		if d := w.must(revokeSkippingGrace(1)); d.Changed {
			t.Errorf("decided %+v", d)
		}
	})
}

func TestWaitersAreServedAfterTheGraceOfARevokedLease(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, withGrace))
	w.enqueue(2)
	there := w.on(2).enqueue(3)
	d := w.on(1).must(revoke(1, nil))
	w.expect("1! | 2 3")
	if len(d.Promoted) != 0 || !d.Due.Equal(w.now.Add(testGrace)) {
		t.Errorf("decided %+v", d)
	}
	w.advance(testGrace - 1)
	if d := w.must(sweep); d.Changed {
		t.Errorf("a sweep before the end of the grace decided %+v", d)
	}
	w.advance(1)
	if d := w.must(sweep); kinds(d) != "granted " || len(d.Promoted) != 1 {
		t.Errorf("a sweep at the end of the grace decided %+v", d)
	}
	w.expect("2 | 3")
	if d := w.must(sweep); d.Changed {
		t.Errorf("a second sweep decided %+v", d)
	}
	w.must(disconnect(there))
}

func TestAGrantThatNoClientWasToldOfHasNoGraceWhenItIsRevoked(t *testing.T) {
	t.Parallel()
	w, call := unclaimedGrant(t) // its grace is two seconds
	if d := w.must(revoke(2, nil)); kinds(d) != "revoked granted " {
		t.Errorf("decided %v", kinds(d))
	}
	w.expect("3 |")
	w.on(2).refused(claim(call), lock.ErrLeaseLost)
}

func TestARevokedReaderBlocksWritersOnly(t *testing.T) {
	t.Parallel()
	t.Run("while others of its phase read on", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared, withGrace))
		w.must(acquire(2, shared))
		w.must(revoke(1, slot(1)))
		w.expect("1! 2 |")
		if l := w.must(acquire(3, shared)).Grant; l.Token != 1 || l.Slot != 3 {
			t.Errorf("granted %+v", l)
		}
		w.must(renew(2))
		if v := (lock.Verify{Name: name, Token: 1}).Check(w.record, w.now); v.Status != lock.Current {
			t.Errorf("the verdict is %+v", v)
		}
		w.enqueue(4)
		w.must(release(2))
		w.must(release(3))
		w.expect("1! | 4")
		w.advance(testGrace)
		w.must(sweep)
		w.expect("4 |")
	})
	t.Run("and the next reader begins another phase if the whole one was revoked", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared, withGrace))
		w.must(acquire(2, shared, withGrace))
		w.must(revoke(1, nil))
		w.expect("1! 2! |")
		if l := w.must(acquire(3, shared)).Grant; l.Token != 2 || l.Slot != 3 {
			t.Errorf("granted %+v", l)
		}
		w.must(revoke(1, nil)) // sent again, it takes nothing from the next reader
		w.must(renew(3))
		w.advance(testGrace)
		w.must(sweep)
		w.expect("3 |")
		w.refused(revoke(1, nil), lock.ErrTokenMismatch)
	})
}

func TestARevokedPermitKeepsItsSlot(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, permit(2), withGrace))
	w.must(acquire(2, permit(2)))
	w.enqueue(3, permit(2))
	w.must(revoke(1, nil))
	w.expect("1! 2 | 3")
	write := lock.FencedWrite{Lock: name, Token: 1, Slot: 1}
	if _, err := write.Newest(w.record, w.now); err == nil {
		t.Error("a write under the revoked permit passed")
	}
	w.must(release(2))
	w.expect("1! 3 |")
	if w.record.Capacity != 2 {
		t.Errorf("the capacity is %d", w.record.Capacity)
	}
	w.refused(acquire(4, permit(3)), lock.ErrCapacityMismatch)
	w.refused(acquire(4, permit(2)), lock.ErrHeld)
	w.must(release(3))
	w.advance(testGrace)
	w.must(acquire(4, permit(3)))
}
