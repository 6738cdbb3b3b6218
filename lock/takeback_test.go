package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// cutOff is the call of a when it was answered without a decision: its client was
// told to come back.
func cutOff(a lock.Acquire) lock.Leave {
	l := hangup(a)
	l.KeepPlace = true
	return l
}

func TestACallThatWasLostKeepsItsPlace(t *testing.T) {
	t.Parallel()
	t.Run("while it waits", func(t *testing.T) {
		t.Parallel()
		w, calls := line(t, 3)
		w.must(cutOff(calls[2]))
		w.looks("1 | (2) 3")
	})
	t.Run("though it was granted the lock, which goes to the next", func(t *testing.T) {
		t.Parallel()
		w, calls := line(t, 4)
		w.must(release(1))
		d := w.must(cutOff(calls[2]))
		if e := d.Events[0]; kinds(d) != "withdrawn granted " || e.Place != 2 || e.Reason != "the call was lost" || len(d.Promoted) != 1 {
			t.Errorf("decided %+v", d)
		}
		w.looks("3 | (2) 4")
		w.waits(2)
		w.must(release(3))
		w.looks("2 | 4")
	})
	t.Run("though it was granted the lock by another replica", func(t *testing.T) {
		t.Parallel()
		w, call := offered(t)
		w.must(cutOff(call))
		w.looks("3 | (2)")
	})
	t.Run("with the capacity that it asked for", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		call := w.waits(2, permit(2))
		w.waits(3, permit(2))
		w.must(release(1))
		w.must(cutOff(call))
		w.looks("3 | (2)")
		if got := w.state.Queue[0]; got.Capacity != 2 || got.Lease.Mode != lock.Permit || got.Lease.TTL == 0 || got.Lease.Token != 0 || got.Lease.Slot != 0 {
			t.Errorf("the place is %+v", got)
		}
	})
}

func TestACallThatWasLostAndItsPlace(t *testing.T) {
	t.Parallel()
	t.Run("has none if it was granted the lock without waiting", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		call := w.call(acquire(1))
		w.must(call)
		if d := w.must(cutOff(call)); d.Events[0].Place != 0 {
			t.Errorf("decided %+v", d)
		}
		w.looks("|")
	})
	t.Run("is kept for as long as places are", func(t *testing.T) {
		t.Parallel()
		w, calls := line(t, 3)
		w.must(release(1))
		w.must(cutOff(calls[2]))
		w.pass(lock.PlaceRetention - time.Millisecond)
		w.must(sweep)
		w.looks("3 | (2)")
		w.pass(time.Millisecond)
		w.must(sweep)
		w.looks("|")
	})
}
