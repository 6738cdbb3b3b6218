package lock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

// heldWithQueue returns a world in which 1 holds the lock and 2, 3, … up to last wait.
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

func TestAQueueServesFirstInFirstOut(t *testing.T) {
	t.Parallel()
	t.Run("who waits is queued, with an event that tells the place", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		d := w.must(w.call(acquire(2)))
		if e := d.Events[0]; !d.Queued || kinds(d) != "queued " || e.Place != 2 || e.Token != 0 || e.Ref != 0 {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 | 2")
	})
	t.Run("a release promotes the next in the same decision, who is told", func(t *testing.T) {
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
	t.Run("so do a revocation, an expiry and the end of a grace", func(t *testing.T) {
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

func TestAGrantOutOfTheQueue(t *testing.T) {
	t.Parallel()
	t.Run("the TTL starts at the grant, not at the call", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 2)
		w.advance(4 * time.Second)
		w.must(release(1))
		if l := w.record.Leases[0]; !l.AcquiredAt.Equal(w.now) || !l.ExpiresAt.Equal(w.now.Add(10*time.Second)) || l.Unclaimed() {
			t.Errorf("granted %+v", l)
		}
	})
	t.Run("nobody waits for a lock that is free", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		if d := w.must(w.call(acquire(1))); d.Queued || d.Grant.Token != 1 || kinds(d) != "granted " {
			t.Errorf("decided %+v", d)
		}
	})
}

func TestNobodyOvertakes(t *testing.T) {
	t.Parallel()
	t.Run("a try finds the lock held, and how many are ahead", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 4)
		w.advance(4 * time.Second)
		if e := w.refused(acquire(9), lock.ErrHeld); e.Ahead != 3 || e.RetryAfter != 6*time.Second || e.KeptFor != 0 {
			t.Errorf("refused with %+v", e)
		}
		w.expect("1 | 2 3 4")
	})
	t.Run("a try that comes at the end of a lease finds it the waiter's", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 2)
		w.advance(10 * time.Second)
		d := w.do(acquire(9))
		if d.Err == nil || kinds(d) != "expired granted " || len(d.Promoted) != 1 {
			t.Errorf("decided %+v", d)
		}
		w.expect("2 |")
	})
	t.Run("a try that would fit beside the leases stays behind who waits", func(t *testing.T) {
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
	t.Run("a release with a waiter's lease_id leaves the queue", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		if d := w.must(release(2)); kinds(d) != "dequeued " || d.Events[0].Place != 2 {
			t.Errorf("decided %+v", d)
		}
		if d := w.must(release(2)); d.Changed {
			t.Errorf("released again it decided %+v", d)
		}
		w.refused(lock.Renew{Name: name, LeaseID: id(2)}, lock.ErrLeaseLost)
		w.expect("1 | 3")
		w.refused(claim(calls[2]), lock.ErrHeld)
		w.must(release(1))
		w.expect("3 |")
	})
	t.Run("and makes way for those behind", func(t *testing.T) {
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

func TestWhoHasLeftTheQueue(t *testing.T) {
	t.Parallel()
	t.Run("who left may come again, at the end", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 3)
		w.must(release(2))
		w.enqueue(2)
		w.expect("1 | 3 2")
	})
	t.Run("a release of what the same decision grants leaves nobody to tell", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.advance(10 * time.Second)
		d := w.must(release(2))
		if kinds(d) != "expired granted released granted " || len(d.Promoted) != 1 || d.Promoted[0].Attachment != calls[3].Attachment {
			t.Errorf("decided %v, promoted %+v", kinds(d), d.Promoted)
		}
		w.expect("3 |")
	})
}

func TestAsManyWaitAsMay(t *testing.T) {
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
		t.Error("a refused waiter left a trace")
	}
	w.must(few(w, 3)) // who has a place finds it
	w.refused(within(lock.Bounds{MaxWaiters: 2}, acquire(4)), lock.ErrHeld)
	w.must(release(1))
	w.must(few(w, 4))
	w.expect("2 | 3 4")
}

func TestPlacesOfADeadReplicaCountForKeepPlaceOnly(t *testing.T) {
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
	w.must(few(w, 2)) // the place is kept: its client finds it at another replica
	w.expect("1 | 2 (3) 4 5")
	w.refused(few(w, 6), lock.ErrTooManyWaiters)
	w.must(release(1))
	w.expect("2 | (3) 4 5")
}
