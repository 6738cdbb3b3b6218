package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestLostCallKeepsItsPlace(t *testing.T) {
	t.Parallel()
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(disconnect(calls[2]))
		w.expect("1 | (2) 3")
	})
	t.Run("after a grant, which goes to the next waiter", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 4)
		w.must(release(1))
		d := w.must(disconnect(calls[2]))
		if e := d.Events[0]; kinds(d) != "withdrawn granted " || e.Place != 2 ||
			e.Reason != "call ended without an answer" ||
			len(d.Promoted) != 1 {
			t.Errorf("decided %+v", d)
		}
		w.expect("3 | (2) 4")
		w.enqueue(2)
		w.must(release(3))
		w.expect("2 | 4")
	})
	t.Run("after a grant by another replica", func(t *testing.T) {
		t.Parallel()
		w, call := unclaimedGrant(t)
		w.must(disconnect(call))
		w.expect("3 | (2)")
	})
	t.Run("with its capacity", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		call := w.enqueue(2, permit(2))
		w.enqueue(3, permit(2))
		w.must(release(1))
		w.must(disconnect(call))
		w.expect("3 | (2)")
		if got := w.record.Queue[0]; got.Capacity != 2 || got.Lease.Mode != lock.Permit || got.Lease.TTL == 0 ||
			got.Lease.Token != 0 ||
			got.Lease.Slot != 0 {
			t.Errorf("the place is %+v", got)
		}
	})
}

func TestPlaceOfALostCall(t *testing.T) {
	t.Parallel()
	t.Run("does not exist if it was granted the lock without waiting", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		call := w.call(acquire(1))
		w.must(call)
		if d := w.must(disconnect(call)); d.Events[0].Place != 0 {
			t.Errorf("decided %+v", d)
		}
		w.expect("|")
	})
	t.Run("is kept for PlaceRetention if less was left of the wait", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(release(1))
		w.must(disconnect(calls[2]))
		w.advance(lock.PlaceRetention - time.Millisecond)
		w.must(sweep)
		w.expect("3 | (2)")
		w.advance(time.Millisecond)
		w.must(sweep)
		w.expect("|")
	})
	t.Run("is kept for what was left of the wait", func(t *testing.T) {
		t.Parallel()
		w, calls := heldWithQueue(t, 3)
		w.must(release(1))
		leave := disconnect(calls[2])
		leave.WaitLeft = 15 * time.Second
		w.must(leave)
		w.advance(15*time.Second - 1)
		w.must(sweep)
		w.expect("| (2)")
		w.advance(1)
		w.must(sweep)
		w.expect("|")
	})
}
