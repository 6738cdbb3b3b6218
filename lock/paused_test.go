package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// pausedModel returns a model with a held lock, in which grants are paused for a minute.
func pausedModel(t *testing.T) *model {
	t.Helper()
	w := newModel(t)
	w.must(acquire(1))
	w.pausedUntil = w.now.Add(time.Minute)
	return w
}

func TestPausedGrants(t *testing.T) {
	t.Parallel()
	t.Run("a free lock is unavailable until RetryAfter", func(t *testing.T) {
		t.Parallel()
		w := pausedModel(t)
		w.must(release(1))
		w.advance(10 * time.Second)
		if e := w.refused(acquire(2), lock.ErrUnavailable); e.RetryAfter != 50*time.Second {
			t.Errorf("RetryAfter is %v, want 50 s", e.RetryAfter)
		}
		w.advance(50 * time.Second)
		w.must(acquire(2))
	})
	t.Run("an existing lease stays valid and blocks others", func(t *testing.T) {
		t.Parallel()
		w := pausedModel(t)
		w.must(renew(1))
		if d := w.must(acquire(1)); !d.Replayed {
			t.Errorf("decided %+v", d)
		}
		if e := w.refused(acquire(2), lock.ErrHeld); e.Holder == "" {
			t.Errorf("refused with %+v", e)
		}
		w.must(release(1))
	})
	t.Run("a reader is not granted beside other readers", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		reads := func(a *lock.Acquire) { a.Mode = lock.Shared }
		w.must(acquire(1, reads))
		w.pausedUntil = w.now.Add(time.Minute)
		w.refused(acquire(2, reads), lock.ErrHeld)
	})
	t.Run("a waiter is granted the lock at the end of the pause, and a sweep is due then", func(t *testing.T) {
		t.Parallel()
		w := pausedModel(t)
		w.must(release(1))
		a := w.call(acquire(2, func(a *lock.Acquire) { a.Wait = lock.MaxWait }))
		w.pausedUntil = w.now.Add(lock.MaxWait / 2)
		d := w.must(a)
		if !d.Queued || !d.Due.Equal(w.pausedUntil) {
			t.Fatalf("decided %+v, want it queued until %v", d, w.pausedUntil)
		}
		w.advance(lock.MaxWait / 2)
		if d := w.must(lock.Sweep{Locks: []string{name}}); len(d.Promoted) != 1 {
			t.Errorf("decided %+v", d)
		}
		w.expect("2 |")
	})
	t.Run("a wait that ends during the pause is refused as unavailable", func(t *testing.T) {
		t.Parallel()
		w := pausedModel(t)
		w.must(release(1))
		a := w.enqueue(2)
		w.advance(20 * time.Second)
		w.refused(lock.Leave{Name: name, LeaseID: a.LeaseID, Attachment: a.Attachment}, lock.ErrUnavailable)
	})
}
