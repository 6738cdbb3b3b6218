package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestPlaceOutlivesTheConnection: a place belongs to the lease_id, whether or not the call asked to keep it.
func TestPlaceOutlivesTheConnection(t *testing.T) {
	t.Parallel()
	t.Run("until the wait would have ended", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(lock.Renew{Name: name, LeaseID: id(1), TTL: time.Hour})
		w.advance(time.Second)
		if d := w.must(disconnect(calls[2])); len(d.Events) != 0 {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 | (2) 3")
		w.advance(calls[2].Wait - time.Second - 1)
		if d := w.must(sweep); len(d.Events) != 0 || !d.Due.Equal(t0.Add(calls[2].Wait)) {
			t.Errorf("decided %+v", d)
		}
		w.enqueue(2)
		w.expect("1 | 2 3")
	})
	t.Run("for PlaceRetention if less is left of the wait", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.must(lock.Renew{Name: name, LeaseID: id(1), TTL: time.Hour})
		w.advance(calls[2].Wait - time.Second)
		w.must(disconnect(calls[2]))
		w.advance(lock.PlaceRetention - 1)
		w.must(sweep)
		w.expect("1 | (2)")
		w.advance(1)
		if d := w.must(sweep); kinds(d) != "dequeued " || d.Events[0].Reason != "place not used again in time" {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 |")
	})
	t.Run("over any number of cuts", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(lock.Renew{Name: name, LeaseID: id(1), TTL: time.Hour})
		call := calls[2]
		for range 20 {
			w.advance(2 * time.Second)
			w.must(disconnect(call))
			w.advance(100 * time.Millisecond)
			call = w.enqueue(2)
		}
		w.must(release(1))
		w.expect("2 |")
	})
}

func TestPlaceOfADisconnectedWaiter(t *testing.T) {
	t.Parallel()
	t.Run("can be released", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(disconnect(calls[2]))
		if d := w.must(release(2)); kinds(d) != "dequeued " || d.Events[0].Reason != "place released" {
			t.Errorf("decided %+v", d)
		}
		w.must(release(2))
		w.expect("1 | 3")
	})
	t.Run("is granted nothing and blocks no other waiter", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(disconnect(calls[2]))
		if d := w.must(release(1)); kinds(d) != "released granted " || d.Events[1].Place != 3 {
			t.Errorf("decided %+v", d)
		}
		w.expect("3 | (2)")
		w.must(release(3))
		w.must(acquire(4))
		w.expect("4 | (2)")
	})
	t.Run("is kept when the replica stops, for as long", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		leave := endWait(calls[2])
		leave.KeepPlace = true
		if e := w.refused(leave, lock.ErrHeld); e.KeptFor != calls[2].Wait {
			t.Errorf("refused with %+v", e)
		}
		w.expect("1 | (2) 3")
	})
}

func TestPlaceOfADisconnectedWaiterCostsLittle(t *testing.T) {
	t.Parallel()
	t.Run("does not require its capacity of other permits", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		call := w.enqueue(2, permit(3))
		w.must(disconnect(call))
		w.enqueue(3, permit(2))
		w.enqueue(2, permit(3))
		w.expect("1 | 2 3")
		w.must(release(1))
		w.expect("2 | 3")
		w.must(release(2))
		w.expect("3 |")
	})
	t.Run("counts for PlaceRetention toward the limit of the queue", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 2)
		w.must(lock.Renew{Name: name, LeaseID: id(1), TTL: time.Hour})
		w.must(disconnect(calls[2]))
		bounds, err := lock.Bounds{MaxWaiters: 1}.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		limited, err := w.call(acquire(3)).Resolve(bounds)
		if err != nil {
			t.Fatal(err)
		}
		w.advance(lock.PlaceRetention - 1)
		w.refused(limited, lock.ErrTooManyWaiters)
		w.advance(1)
		w.must(limited)
		w.enqueue(2)
		w.expect("1 | 2 3")
	})
}
