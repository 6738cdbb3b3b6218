package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// testGrace is the grace of the leases in these tests.
const testGrace = 5 * time.Second

func withGrace(a *lock.Acquire) { a.Grace = testGrace }

func revokeSkippingGrace(token lock.Token) lock.Revoke {
	r := revoke(token, nil)
	r.SkipGrace = true
	return r
}

func TestRevocationKeepsTheGrace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before time.Duration // time since the grant of a 10 s lease
		cmd    lock.Revoke
		left   time.Duration // of the grace after the revocation; zero: the lock is free at once
	}{
		{"of a held lease", 3 * time.Second, revoke(1, nil), testGrace},
		{"at the last instant of the TTL", 10*time.Second - 1, revoke(1, nil), testGrace},
		{"at the end of the TTL", 10 * time.Second, revoke(1, nil), testGrace},
		{"during the grace", 12 * time.Second, revoke(1, nil), 3 * time.Second},
		{"of a held lease, skipping the grace", 3 * time.Second, revokeSkippingGrace(1), 0},
		{"during the grace, skipping the rest", 12 * time.Second, revokeSkippingGrace(1), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newModel(t)
			w.must(acquire(1, withGrace))
			w.advance(c.before)
			d := w.must(c.cmd)
			l := w.record.Lock(w.now)
			if kinds(d) != "revoked " || l.NextChangeAt().IsZero() != (c.left == 0) {
				t.Errorf("decided %v and changes next at %v", kinds(d), l.NextChangeAt())
			}
			if c.left > 0 {
				if l.State != lock.InGrace || len(l.Leases) != 1 || !l.Leases[0].Revoked ||
					l.Leases[0].Remaining != 0 ||
					!d.Due.Equal(w.now.Add(c.left)) {
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
			if d := w.must(acquire(2)); kinds(d) != "granted " || d.Lease.Token != 2 {
				t.Errorf("decided %v, %+v", kinds(d), d.Lease)
			}
		})
	}
}

func TestHolderOfARevokedLeaseIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	for name, cmd := range map[string]lock.Command{
		"a renewal": renew(1), "a release": release(1), "the acquire repeated": acquire(1, withGrace),
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

func TestTokenOfARevokedLeaseHasEnded(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, withGrace))
	w.must(revoke(1, nil))
	verify := lock.Verify{Name: name, Token: 1}
	if v := verify.Check(w.record, w.now); v.Status != lock.Ended || v.Remaining != 0 {
		t.Errorf("the verification is %+v", v)
	}
	if newest, err := (lock.FencedWrite{Lock: name, Token: 1}).RequiredToken(w.record, w.now); newest != 1 || err != nil {
		t.Errorf("a fenced write needs token %d, %v", newest, err)
	}
}

func TestRepeatedRevocation(t *testing.T) {
	t.Parallel()
	t.Run("succeeds and changes nothing", func(t *testing.T) {
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
	t.Run("can skip the rest of the grace, with its own event", func(t *testing.T) {
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
	t.Run("that skips the grace can be repeated", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, withGrace))
		w.must(revokeSkippingGrace(1))
		if d := w.must(revokeSkippingGrace(1)); d.Changed {
			t.Errorf("decided %+v", d)
		}
	})
}

func TestWaitersAreGrantedTheLockAfterTheGraceOfARevokedLease(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, withGrace))
	w.enqueue(2)
	remote := w.on(2).enqueue(3)
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
	w.must(disconnect(remote))
}

func TestUnclaimedGrantHasNoGraceWhenRevoked(t *testing.T) {
	t.Parallel()
	w, call := unclaimedGrant(t) // its grace is two seconds
	if d := w.must(revoke(2, nil)); kinds(d) != "revoked granted " {
		t.Errorf("decided %v", kinds(d))
	}
	w.expect("3 |")
	w.on(2).refused(claim(call), lock.ErrLeaseLost)
}

func TestRevokedReaderBlocksWritersOnly(t *testing.T) {
	t.Parallel()
	t.Run("while other readers hold the lock", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared, withGrace))
		w.must(acquire(2, shared))
		w.must(revoke(1, slot(1)))
		w.expect("1! 2 |")
		if l := w.must(acquire(3, shared)).Lease; l.Token != 1 || l.Slot != 3 {
			t.Errorf("granted %+v", l)
		}
		w.must(renew(2))
		if v := (lock.Verify{Name: name, Token: 1}).Check(w.record, w.now); v.Status != lock.Current {
			t.Errorf("the verification is %+v", v)
		}
		w.enqueue(4)
		w.must(release(2))
		w.must(release(3))
		w.expect("1! | 4")
		w.advance(testGrace)
		w.must(sweep)
		w.expect("4 |")
	})
	t.Run("and the next reader has a new token if all readers were revoked", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared, withGrace))
		w.must(acquire(2, shared, withGrace))
		w.must(revoke(1, nil))
		w.expect("1! 2! |")
		if l := w.must(acquire(3, shared)).Lease; l.Token != 2 || l.Slot != 3 {
			t.Errorf("granted %+v", l)
		}
		w.must(revoke(1, nil)) // repeated, it does not affect the next reader
		w.must(renew(3))
		w.advance(testGrace)
		w.must(sweep)
		w.expect("3 |")
		w.refused(revoke(1, nil), lock.ErrTokenMismatch)
	})
}

func TestRevokedPermitKeepsItsSlot(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, permit(2), withGrace))
	w.must(acquire(2, permit(2)))
	w.enqueue(3, permit(2))
	w.must(revoke(1, nil))
	w.expect("1! 2 | 3")
	write := lock.FencedWrite{Lock: name, Token: 1, Slot: 1}
	if _, err := write.RequiredToken(w.record, w.now); err == nil {
		t.Error("a write with the revoked permit was accepted")
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

func TestRepeatedRevocationInGraceSucceedsBesideAReader(t *testing.T) {
	t.Parallel()
	m := newSetModel(t)
	set := []lock.Member{{Name: "a", Mode: lock.Shared}, {Name: "b", Mode: lock.Shared}}
	_, first := m.acquire(lock.Acquire{LeaseID: id(1), Holder: "one", TTL: 10 * time.Second, Grace: 10 * time.Second, Set: set})
	revoke := func() error {
		d := m.applyAll(lock.Revoke{Name: "a", Token: first.Lease.Token, Reason: "test"})
		for ; d.Rest != nil; d = m.applyAll(d.Rest) {
		}
		return d.Err
	}
	if err := revoke(); err != nil {
		t.Fatal(err)
	}
	if _, d := m.acquire(lock.Acquire{Name: "a", Mode: lock.Shared, LeaseID: id(2), Holder: "two", TTL: 10 * time.Second}); d.Err != nil {
		t.Fatal(d.Err)
	}
	if err := revoke(); err != nil {
		t.Errorf("the repeated revocation was refused: %v", err)
	}
}
