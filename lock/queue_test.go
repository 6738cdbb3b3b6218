package lock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

// heldWithQueue returns a model in which 1 holds the lock and 2, 3, … up to last wait.
func heldWithQueue(t *testing.T, last byte) (*model, map[byte]lock.Acquire) {
	t.Helper()
	w := newModel(t)
	w.must(acquire(1))
	calls := map[byte]lock.Acquire{}
	for n := byte(2); n <= last; n++ {
		calls[n] = w.enqueue(n)
	}
	return w, calls
}

func kinds(d lock.Decision) string {
	s := ""
	for _, e := range d.Events {
		s += e.Kind.String() + " "
	}
	return s
}

func TestQueueIsFIFO(t *testing.T) {
	t.Parallel()
	t.Run("a waiting request is queued, with an event that has its place", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		d := w.must(w.call(acquire(2)))
		if e := d.Events[0]; !d.Queued || kinds(d) != "queued " || e.Place != 2 || e.Token != 0 || e.Ref != 0 {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 | 2")
	})
	t.Run("a release promotes the next waiter in the same decision and notifies it", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		d := w.must(release(1))
		w.expect("2 | 3")
		if kinds(d) != "released granted " || d.Events[1].Place != 2 || d.Events[1].Token != 2 {
			t.Errorf("decided %+v", d)
		}
		if len(d.Promoted) != 1 || d.Promoted[0].Attachment != calls[2].Attachment {
			t.Errorf("promoted %+v", d.Promoted)
		}
	})
	t.Run("a revocation and an expiry also promote", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 4)
		w.must(revoke(1, nil))
		w.expect("2 | 3 4")
		w.advance(10 * time.Second)
		if d := w.must(sweep); kinds(d) != "expired granted " {
			t.Errorf("decided %v", kinds(d))
		}
		w.expect("3 | 4")
		w.must(release(3))
		w.expect("4 |")
	})
}

func TestGrantFromTheQueue(t *testing.T) {
	t.Parallel()
	t.Run("the TTL starts at the grant, not at the call", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 2)
		w.advance(4 * time.Second)
		w.must(release(1))
		if l := w.record.Leases[0]; !l.AcquiredAt.Equal(w.now) || !l.ExpiresAt.Equal(w.now.Add(10*time.Second)) ||
			l.Unclaimed() {
			t.Errorf("granted %+v", l)
		}
	})
	t.Run("a free lock is granted without waiting", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		if d := w.must(w.call(acquire(1))); d.Queued || d.Lease.Token != 1 || kinds(d) != "granted " {
			t.Errorf("decided %+v", d)
		}
	})
}

func TestNoOvertaking(t *testing.T) {
	t.Parallel()
	t.Run("a non-waiting request is refused with the number of waiters", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 4)
		w.advance(4 * time.Second)
		if e := w.refused(acquire(9), lock.ErrHeld); e.Ahead != 3 || e.RetryAfter != 6*time.Second || e.KeptFor != 0 {
			t.Errorf("refused with %+v", e)
		}
		w.expect("1 | 2 3 4")
	})
	t.Run("a non-waiting request at the end of a lease does not jump the queue", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 2)
		w.advance(10 * time.Second)
		d := w.do(acquire(9))
		if d.Err == nil || kinds(d) != "expired granted " || len(d.Promoted) != 1 {
			t.Errorf("decided %+v", d)
		}
		w.expect("2 |")
	})
	t.Run("a compatible non-waiting request does not pass a waiter", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared))
		w.enqueue(2)
		w.refused(acquire(9, shared), lock.ErrHeld)
		w.enqueue(3, shared)
		w.expect("1 | 2 3")
	})
}

func TestLeavingTheQueue(t *testing.T) {
	t.Parallel()
	t.Run("a release with a waiter's lease_id removes the waiter", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		if d := w.must(release(2)); kinds(d) != "dequeued " || d.Events[0].Place != 2 {
			t.Errorf("decided %+v", d)
		}
		if d := w.must(release(2)); d.Changed {
			t.Errorf("the repeated release decided %+v", d)
		}
		w.refused(lock.Renew{Name: name, LeaseID: id(2)}, lock.ErrLeaseLost)
		w.expect("1 | 3")
		w.refused(claim(calls[2]), lock.ErrHeld)
		w.must(release(1))
		w.expect("3 |")
	})
	t.Run("a release of a waiter unblocks those behind", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared))
		w.enqueue(2)
		w.enqueue(3, shared)
		w.enqueue(4, shared)
		if d := w.must(release(2)); kinds(d) != "dequeued granted granted " || len(d.Promoted) != 2 {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 3 4 |")
	})
}

func TestAfterLeavingTheQueue(t *testing.T) {
	t.Parallel()
	t.Run("a client may join again at the end", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 3)
		w.must(release(2))
		w.enqueue(2)
		w.expect("1 | 3 2")
	})
	t.Run("a lease granted and released in the same decision is not notified", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.advance(10 * time.Second)
		d := w.must(release(2))
		if kinds(d) != "expired granted released granted " || len(d.Promoted) != 1 ||
			d.Promoted[0].Attachment != calls[3].Attachment {
			t.Errorf("decided %v, promoted %+v", kinds(d), d.Promoted)
		}
		w.expect("3 |")
	})
}

func TestMaxWaiters(t *testing.T) {
	t.Parallel()
	few := func(w *model, n byte, change ...func(*lock.Acquire)) lock.Acquire {
		return w.call(within(lock.Bounds{MaxWaiters: 2}, acquire(n, change...)))
	}
	w := newModel(t)
	w.must(acquire(1))
	w.must(few(w, 2))
	w.must(few(w, 3))
	before := w.record
	if e := w.refused(few(w, 4), lock.ErrTooManyWaiters); e.Ahead != 2 || e.RetryAfter != 10*time.Second {
		t.Errorf("refused with %+v", e)
	}
	w.refused(within(lock.Bounds{MaxWaiters: 2}, acquire(4, keep)), lock.ErrTooManyWaiters)
	if !cmp.Equal(before, w.record) {
		t.Error("a refused waiter changed the record")
	}
	w.must(few(w, 3)) // its place counts only once
	w.refused(within(lock.Bounds{MaxWaiters: 2}, acquire(4)), lock.ErrHeld)
	w.must(release(1))
	w.must(few(w, 4))
	w.expect("2 | 3 4")
}

func TestPlacesOfADeadReplicaCountForTheRetentionOnly(t *testing.T) {
	t.Parallel()
	few := func(w *model, n byte) lock.Acquire {
		return w.call(within(lock.Bounds{MaxWaiters: 2}, acquire(n, func(a *lock.Acquire) { a.Wait = lock.MaxWait })))
	}
	w := newModel(t)
	w.must(acquire(1, func(a *lock.Acquire) { a.TTL = time.Hour }))
	w.on(2).must(few(w, 2))
	w.must(few(w, 3))
	w.silence(2)
	w.on(1).advance(lock.ReplicaTTL + lock.PlaceRetention - 1)
	w.refused(few(w, 4), lock.ErrTooManyWaiters)
	w.advance(1)
	w.must(few(w, 4))
	w.must(few(w, 5))
	w.expect("1 | (2) (3) 4 5")
	if e := w.refused(few(w, 6), lock.ErrTooManyWaiters); e.Ahead != 2 {
		t.Errorf("refused with %+v", e)
	}
	w.must(few(w, 2)) // its client resumes at another replica
	w.expect("1 | 2 (3) 4 5")
	w.refused(few(w, 6), lock.ErrTooManyWaiters)
	w.must(release(1))
	w.expect("2 | (3) 4 5")
}
