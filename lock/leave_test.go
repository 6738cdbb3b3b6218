package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestWaitEnds(t *testing.T) {
	t.Parallel()
	t.Run("the waiter leaves the queue and unblocks those behind", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared))
		call := w.enqueue(2)
		w.enqueue(3, shared)
		d := w.do(endWait(call))
		if kinds(d) != "dequeued granted " || d.Events[0].Reason != "wait ended" {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 3 |")
		w.enqueue(2)
	})
	t.Run("the call receives a grant that crossed its end", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.must(release(1))
		if d := w.must(endWait(calls[2])); d.Lease.ID != id(2) || d.Changed || d.Replayed {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("the call receives a lock that becomes free in the same decision", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		call := w.enqueue(2, func(a *lock.Acquire) { a.Wait = 10 * time.Second })
		w.advance(10 * time.Second)
		if d := w.must(endWait(call)); d.Lease.ID != id(2) || kinds(d) != "expired granted " || len(d.Promoted) != 0 {
			t.Errorf("decided %+v", d)
		}
	})
}

func TestWaitEndsAfterAGrant(t *testing.T) {
	t.Parallel()
	t.Run("the call is refused if the lease has been revoked meanwhile", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.must(release(1))
		w.must(revoke(2, nil))
		for _, cmd := range []lock.Command{endWait(calls[2]), claim(calls[2])} {
			if e := w.refused(cmd, lock.ErrLeaseLost); e.Ended != lock.Revoked || e.Reason != "maintenance" {
				t.Errorf("refused with %+v", e)
			}
		}
	})
	t.Run("a waiter whose wait has ended is skipped before it leaves", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared))
		call := w.enqueue(2, func(a *lock.Acquire) { a.Wait = time.Second })
		w.enqueue(3, shared)
		w.advance(time.Second)
		if d := w.must(sweep); kinds(d) != "granted " {
			t.Errorf("decided %v", kinds(d))
		}
		w.expect("1 3 | (2)")
		w.refused(endWait(call), lock.ErrHeld)
		w.expect("1 3 |")
	})
}

func TestDisconnectWithAGeneratedLeaseID(t *testing.T) {
	t.Parallel()
	t.Run("removes the waiter", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		if d := w.must(disconnectNameless(calls[2])); kinds(d) != "dequeued " || d.Events[0].Reason != "client disconnected" {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 | 3")
	})
	t.Run("withdraws a grant that crossed it, and grants the lock to the next waiter", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(release(1))
		d := w.must(disconnectNameless(calls[2]))
		w.expect("3 |")
		if e := d.Events[0]; kinds(d) != "withdrawn granted " || e.Token != 2 || e.Reason != "client disconnected" ||
			e.Ref != 0 {
			t.Errorf("decided %+v", d)
		}
		if len(d.Promoted) != 1 || d.Events[1].Token != 3 {
			t.Errorf("promoted %+v", d)
		}
	})
	t.Run("frees the lock if no waiter is next", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.must(release(1))
		w.must(disconnectNameless(calls[2]))
		w.expect("|")
		if w.record.LastEnd != lock.Withdrawn || w.record.Lock(w.now).State != lock.Free {
			t.Errorf("the lock is %+v", w.record)
		}
	})
}

func TestDisconnectAtTheGrant(t *testing.T) {
	t.Parallel()
	t.Run("withdraws a grant of the same decision without a notification", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.advance(10 * time.Second)
		if d := w.must(disconnectNameless(calls[2])); kinds(d) != "expired granted withdrawn " || len(d.Promoted) != 0 {
			t.Errorf("decided %+v", d)
		}
		w.expect("|")
	})
	t.Run("allows another call with the same lease_id", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(release(1))
		w.must(disconnectNameless(calls[2]))
		w.enqueue(2)
		w.must(release(3))
		w.expect("2 |")
		if l := w.record.Leases[0]; l.Token != 4 {
			t.Errorf("granted %+v", l)
		}
	})
	t.Run("withdraws a grant that it did not wait for", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		call := w.call(acquire(1))
		w.must(call)
		w.must(disconnectNameless(call))
		w.expect("|")
	})
	t.Run("does not withdraw a lease that its holder has renewed", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.must(release(1))
		w.must(renew(2)) // so a client knows of it
		w.do(disconnectNameless(calls[2]))
		w.expect("2 |")
		w.must(renew(2))
	})
}
