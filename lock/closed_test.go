package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// closedWorld returns a world in which nothing is granted for a minute.
func closedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.must(acquire(1))
	w.closed = w.now.Add(time.Minute)
	return w
}

func TestNothingIsGrantedWhileLeasesMayBeUnknown(t *testing.T) {
	t.Parallel()
	t.Run("a free lock is refused as unavailable, until when it says", func(t *testing.T) {
		t.Parallel()
		w := closedWorld(t)
		w.must(release(1))
		w.pass(10 * time.Second)
		if e := w.refused(acquire(2), lock.ErrUnavailable); e.RetryAfter != 50*time.Second {
			t.Errorf("RetryAfter is %v, want 50 s", e.RetryAfter)
		}
		w.pass(50 * time.Second)
		w.must(acquire(2))
	})
	t.Run("a lease that there is goes on, and says who has the lock", func(t *testing.T) {
		t.Parallel()
		w := closedWorld(t)
		w.must(renew(1))
		if d := w.must(acquire(1)); !d.Replay {
			t.Errorf("decided %+v", d)
		}
		if e := w.refused(acquire(2), lock.ErrHeld); e.Holder == "" {
			t.Errorf("refused with %+v", e)
		}
		w.must(release(1))
	})
	t.Run("a reader does not join those that there are", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		reads := func(a *lock.Acquire) { a.Mode = lock.Shared }
		w.must(acquire(1, reads))
		w.closed = w.now.Add(time.Minute)
		w.refused(acquire(2, reads), lock.ErrHeld)
	})
	t.Run("who waits is served when it is over, and a sweep is due then", func(t *testing.T) {
		t.Parallel()
		w := closedWorld(t)
		w.must(release(1))
		a := w.call(acquire(2, func(a *lock.Acquire) { a.Wait = lock.MaxWait }))
		w.closed = w.now.Add(lock.MaxWait / 2)
		d := w.must(a)
		if !d.Queued || !d.Due.Equal(w.closed) {
			t.Fatalf("decided %+v, want to wait until %v", d, w.closed)
		}
		w.pass(lock.MaxWait / 2)
		if d := w.must(lock.Sweep{Name: name}); len(d.Promoted) != 1 {
			t.Errorf("decided %+v", d)
		}
		w.looks("2 |")
	})
	t.Run("a wait that is over before is told why", func(t *testing.T) {
		t.Parallel()
		w := closedWorld(t)
		w.must(release(1))
		a := w.waits(2)
		w.pass(20 * time.Second)
		w.refused(lock.Leave{Name: name, LeaseID: a.LeaseID, Attachment: a.Attachment}, lock.ErrUnavailable)
	})
}
