package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// theGrace is that of the leases in these tests.
const theGrace = 5 * time.Second

func graceful(a *lock.Acquire) { a.Grace = theGrace }

func atOnce(token lock.Token) lock.Revoke {
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
		{"of a held lease, from the revocation on", 3 * time.Second, revoke(1, nil), theGrace},
		{"at the last instant of the TTL", 10*time.Second - 1, revoke(1, nil), theGrace},
		{"at the end of the TTL", 10 * time.Second, revoke(1, nil), theGrace},
		{"in the grace, what is left of it", 12 * time.Second, revoke(1, nil), 3 * time.Second},
		{"unless the revocation skips it", 3 * time.Second, atOnce(1), 0},
		{"unless the revocation skips what is left of it", 12 * time.Second, atOnce(1), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must(acquire(1, graceful))
			w.pass(c.before)
			d := w.must(c.cmd)
			l := w.state.Lock(w.now)
			if kinds(d) != "revoked " || l.NextChangeAt().IsZero() != (c.left == 0) {
				t.Errorf("decided %v and turns at %v", kinds(d), l.NextChangeAt())
			}
			if c.left > 0 {
				if l.State != lock.InGrace || len(l.Leases) != 1 || !l.Leases[0].Revoked || l.Leases[0].Remaining != 0 || !d.Due.Equal(w.now.Add(c.left)) {
					t.Errorf("the lock is %+v, due %v", l, d.Due)
				}
				w.pass(c.left - 1)
				if e := w.refused(acquire(2), lock.ErrHeld); e.RetryAfter != 1 || e.Holder != "worker" {
					t.Errorf("refused with %+v", e)
				}
				w.pass(1)
			}
			if l := w.state.Lock(w.now); l.State != lock.Free || len(l.Leases) != 0 {
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
		"a renewal": renew(1), "a release": release(1), "the acquire again": acquire(1, graceful),
		"an acquire that waits": lock.Acquire{Name: name, LeaseID: id(1), Holder: "worker", Mode: lock.Exclusive, TTL: time.Second, Wait: time.Second, Attachment: 9, Replica: 1},
		"a claim":               lock.Claim{Name: name, LeaseID: id(1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.must(acquire(1, graceful))
			w.pass(time.Second)
			w.must(revoke(1, nil))
			revoked := w.now
			for _, after := range []time.Duration{0, theGrace - 1, 1, time.Hour} {
				w.pass(after)
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
	w := newWorld(t)
	w.must(acquire(1, graceful))
	w.must(revoke(1, nil))
	verify := lock.Verify{Name: name, Token: 1}
	if v := verify.Check(w.state, w.now); v.Status != lock.Ended || v.Remaining != 0 {
		t.Errorf("the verdict is %+v", v)
	}
	if newest, err := (lock.FencedWrite{Lock: name, Token: 1}).Newest(w.state, w.now); newest != 1 || err != nil {
		t.Errorf("a fenced write must have token %d, %v", newest, err)
	}
}

func TestASecondRevocation(t *testing.T) {
	t.Parallel()
	t.Run("changes nothing and succeeds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1, graceful))
		w.must(revoke(1, nil))
		w.pass(time.Second)
		if d := w.must(revoke(1, nil)); d.Changed || !d.Due.Equal(w.now.Add(theGrace-time.Second)) {
			t.Errorf("decided %+v", d)
		}
		w.pass(theGrace)
		w.must(revoke(1, nil))
	})
	t.Run("skips the rest of the grace if it says so, with an event of its own", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1, graceful))
		w.waits(2)
		w.must(revoke(1, nil))
		revoked := w.now
		w.pass(time.Second)
		again := atOnce(1)
		again.Reason = "the host is off"
		d := w.must(again)
		w.looks("2 |")
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
		w := newWorld(t)
		w.must(acquire(1, graceful))
		w.must(atOnce(1))
		if d := w.must(atOnce(1)); d.Changed {
			t.Errorf("decided %+v", d)
		}
	})
}

func TestWaitersAreServedAfterTheGraceOfARevokedLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(acquire(1, graceful))
	w.waits(2)
	there := w.on(2).waits(3)
	d := w.on(1).must(revoke(1, nil))
	w.looks("1! | 2 3")
	if len(d.Promoted) != 0 || !d.Due.Equal(w.now.Add(theGrace)) {
		t.Errorf("decided %+v", d)
	}
	w.pass(theGrace - 1)
	if d := w.must(sweep); d.Changed {
		t.Errorf("a sweep before the end of the grace decided %+v", d)
	}
	w.pass(1)
	if d := w.must(sweep); kinds(d) != "granted " || len(d.Promoted) != 1 {
		t.Errorf("a sweep at the end of the grace decided %+v", d)
	}
	w.looks("2 | 3")
	if d := w.must(sweep); d.Changed {
		t.Errorf("a second sweep decided %+v", d)
	}
	w.must(hangup(there))
}

func TestAGrantThatNoClientWasToldOfHasNoGraceWhenItIsRevoked(t *testing.T) {
	t.Parallel()
	w, call := offered(t) // its grace is two seconds
	if d := w.must(revoke(2, nil)); kinds(d) != "revoked granted " {
		t.Errorf("decided %v", kinds(d))
	}
	w.looks("3 |")
	w.on(2).refused(claim(call), lock.ErrLeaseLost)
}

func TestARevokedReaderBlocksWritersOnly(t *testing.T) {
	t.Parallel()
	t.Run("while others of its phase read on", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1, shared, graceful))
		w.must(acquire(2, shared))
		w.must(revoke(1, slot(1)))
		w.looks("1! 2 |")
		if l := w.must(acquire(3, shared)).Grant; l.Token != 1 || l.Slot != 3 {
			t.Errorf("granted %+v", l)
		}
		w.must(renew(2))
		if v := (lock.Verify{Name: name, Token: 1}).Check(w.state, w.now); v.Status != lock.Current {
			t.Errorf("the verdict is %+v", v)
		}
		w.waits(4)
		w.must(release(2))
		w.must(release(3))
		w.looks("1! | 4")
		w.pass(theGrace)
		w.must(sweep)
		w.looks("4 |")
	})
	t.Run("and the next reader begins another phase if the whole one was revoked", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1, shared, graceful))
		w.must(acquire(2, shared, graceful))
		w.must(revoke(1, nil))
		w.looks("1! 2! |")
		if l := w.must(acquire(3, shared)).Grant; l.Token != 2 || l.Slot != 3 {
			t.Errorf("granted %+v", l)
		}
		w.must(revoke(1, nil)) // sent again, it takes nothing from the next reader
		w.must(renew(3))
		w.pass(theGrace)
		w.must(sweep)
		w.looks("3 |")
		w.refused(revoke(1, nil), lock.ErrTokenMismatch)
	})
}

func TestARevokedPermitKeepsItsSlot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(acquire(1, permit(2), graceful))
	w.must(acquire(2, permit(2)))
	w.waits(3, permit(2))
	w.must(revoke(1, nil))
	w.looks("1! 2 | 3")
	write := lock.FencedWrite{Lock: name, Token: 1, Slot: 1}
	if _, err := write.Newest(w.state, w.now); err == nil {
		t.Error("a write under the revoked permit passed")
	}
	w.must(release(2))
	w.looks("1! 3 |")
	if w.state.Capacity != 2 {
		t.Errorf("the capacity is %d", w.state.Capacity)
	}
	w.refused(acquire(4, permit(3)), lock.ErrCapacityMismatch)
	w.refused(acquire(4, permit(2)), lock.ErrHeld)
	w.must(release(3))
	w.pass(theGrace)
	w.must(acquire(4, permit(3)))
}
