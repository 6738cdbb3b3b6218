package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestPlaceBelongsToTheLeaseID(t *testing.T) {
	t.Parallel()
	t.Run("a later call with the lease_id takes over the place", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		again := w.on(2).call(acquire(2))
		if d := w.must(again); !d.Queued || len(d.Events) != 0 {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 | 2 3")
		w.on(1).refused(claim(calls[2]), lock.ErrHeld)
		w.refused(endWait(calls[2]), lock.ErrHeld)
		w.do(disconnect(calls[2]))
		w.expect("1 | 2 3")
		w.must(release(1))
		if d := w.on(2).must(claim(again)); d.Lease.ID != id(2) || d.Lease.Token != 2 {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("the later call waits for its own time", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 2)
		w.advance(5 * time.Second)
		again := w.call(acquire(2, func(a *lock.Acquire) { a.Wait = 30 * time.Second }))
		w.must(again)
		if o := w.record.Queue[0]; !o.WaitUntil.Equal(t0.Add(35*time.Second)) || !o.JoinedAt.Equal(t0) || o.Place != 2 {
			t.Errorf("the waiter is %+v", o)
		}
	})
	t.Run("a call with another holder, mode or capacity is refused", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.enqueue(2, permit(3))
		for _, other := range []func(*lock.Acquire){
			shared, permit(2), func(a *lock.Acquire) { permit(3)(a); a.Holder = "another holder" },
		} {
			w.refused(w.call(acquire(2, other)), lock.ErrLeaseIDInUse)
		}
		w.expect("1 | 2")
	})
}

func TestLeaseIDWithAPlaceOrALease(t *testing.T) {
	t.Parallel()
	t.Run("a non-waiting call gives up the place", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		if d := w.do(acquire(2)); kinds(d) != "dequeued " || d.Err == nil {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 | 3")
		w.refused(claim(calls[2]), lock.ErrHeld)
	})
	t.Run("a call at the moment of the grant receives the lease, and can withdraw it", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.advance(10 * time.Second)
		again := w.call(acquire(2))
		if d := w.must(again); d.Replayed || kinds(d) != "expired granted " || len(d.Promoted) != 0 {
			t.Errorf("decided %+v", d)
		}
		w.do(disconnect(calls[2]))
		w.expect("2 |")
		w.must(disconnect(again))
		w.expect("| (2)")
	})
	t.Run("a delivered lease is found by any call, and no earlier call can withdraw it", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.must(release(1))
		again := w.on(2).call(acquire(2))
		if d := w.must(again); !d.Replayed || d.Lease.Token != 2 {
			t.Errorf("decided %+v", d)
		}
		w.on(1).do(disconnect(calls[2]))
		w.expect("2 |")
		w.on(2).do(disconnect(again)) // the first call may have delivered it
		w.expect("2 |")
	})
}

// keptPlace returns a model in which the place of 2 is kept.
func keptPlace(t *testing.T) *model {
	t.Helper()
	w := newModel(t)
	w.must(acquire(1))
	call := w.enqueue(2, keep, func(a *lock.Acquire) { a.Wait = time.Second })
	w.enqueue(3)
	w.advance(time.Second)
	if e := w.refused(endWait(call), lock.ErrHeld); e.KeptFor != lock.PlaceRetention || e.Ahead != 1 {
		t.Errorf("refused with %+v", e)
	}
	w.expect("1 | (2) 3")
	return w
}

func TestKeptPlace(t *testing.T) {
	t.Parallel()
	t.Run("is found by the next call", func(t *testing.T) {
		t.Parallel()
		w := keptPlace(t)
		w.must(renew(1))
		w.advance(lock.PlaceRetention - 1)
		w.enqueue(2)
		w.expect("1 | 2 3")
		w.must(release(1))
		w.expect("2 | 3")
	})
}

func TestDetachedWaiterIsSkipped(t *testing.T) {
	t.Parallel()
	t.Run("and continues at its place when its client returns", func(t *testing.T) {
		t.Parallel()
		w := keptPlace(t)
		w.must(release(1))
		w.expect("3 | (2)")
		w.enqueue(4)
		w.enqueue(2)
		w.expect("3 | 2 4")
	})
	t.Run("and does not block a new request", func(t *testing.T) {
		t.Parallel()
		w := keptPlace(t)
		w.must(release(1))
		w.must(release(3))
		w.must(acquire(4))
		w.expect("4 | (2)")
	})
	t.Run("and is granted a free lock at once", func(t *testing.T) {
		t.Parallel()
		w := keptPlace(t)
		w.must(release(1))
		w.must(release(3))
		if d := w.must(acquire(2)); d.Replayed || d.Queued || kinds(d) != "granted " || d.Events[0].Place != 2 ||
			len(d.Promoted) != 0 {
			t.Errorf("decided %+v", d)
		}
		w.expect("2 |")
	})
}

func TestPlaceRetention(t *testing.T) {
	t.Parallel()
	t.Run("ends with an event", func(t *testing.T) {
		t.Parallel()
		w := keptPlace(t)
		r := renew(1)
		r.TTL = time.Hour
		w.must(r)
		w.advance(lock.PlaceRetention - 1)
		if d := w.must(sweep); d.Changed || !d.Due.Equal(w.now.Add(1)) {
			t.Errorf("decided %+v", d)
		}
		w.advance(1)
		if d := w.must(sweep); kinds(d) != "dequeued " || d.Events[0].Reason != "place not used again in time" {
			t.Errorf("decided %+v", d)
		}
		w.enqueue(2)
		w.expect("1 | 3 2")
	})
	t.Run("also applies to a call that does not wait", func(t *testing.T) {
		t.Parallel()
		w, _ := heldWithQueue(t, 2)
		if e := w.refused(acquire(3, keep), lock.ErrHeld); e.KeptFor != lock.PlaceRetention ||
			w.events[len(w.events)-1].Kind != lock.Queued {
			t.Errorf("refused with %+v", e)
		}
		w.expect("1 | 2 (3)")
		w.refused(acquire(3, keep), lock.ErrHeld)
		w.expect("1 | 2 (3)")
	})
	t.Run("applies without an event to a call that its replica ends", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared))
		call := w.enqueue(2)
		w.enqueue(3, shared)
		if d := w.must(disconnect(call)); kinds(d) != "granted " {
			t.Errorf("decided %v", kinds(d))
		}
		w.expect("1 3 | (2)")
	})
}
