package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestRelease(t *testing.T) {
	t.Parallel()
	t.Run("frees the lock, and a repeated release changes nothing", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.must(release(1))
		if d := w.must(release(1)); d.Changed || w.record.Lock(w.now).State != lock.Free {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("succeeds when repeated under the next holder, and does not affect it", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.must(release(1))
		w.must(acquire(2))
		w.must(release(1))
		w.must(renew(2))
	})
	t.Run("of an expired lease is refused as expired", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.advance(time.Hour)
		if e := w.refused(release(1), lock.ErrLeaseLost); e.Ended != lock.Expired || !e.EndedAt.Equal(w.now) {
			t.Errorf("refused with %+v", e)
		}
	})
	t.Run("works during the grace", func(t *testing.T) {
		t.Parallel()
		w := inGrace(t)
		w.must(release(1))
	})
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	t.Run("ends the lease and tells its holder the reason", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.must(revoke(1, nil))
		if e := w.refused(renew(1), lock.ErrLeaseLost); e.Ended != lock.Revoked || e.Reason != "maintenance" {
			t.Errorf("refused with %+v", e)
		}
		if d := w.must(acquire(2)); d.Lease.Token != 2 {
			t.Errorf("next token %d", d.Lease.Token)
		}
	})
	t.Run("succeeds when repeated before the next grant", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.must(revoke(1, nil))
		if d := w.must(revoke(1, nil)); d.Changed {
			t.Error("revoked twice")
		}
		w.must(acquire(2))
		w.refused(revoke(1, nil), lock.ErrTokenMismatch)
	})
	t.Run("is refused for a token that does not hold the lock", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.refused(revoke(7, nil), lock.ErrTokenMismatch)
		w.must(acquire(1))
		if e := w.refused(revoke(7, nil), lock.ErrTokenMismatch); e.Token != 7 || e.Newest != 1 {
			t.Errorf("refused with %+v", e)
		}
		w.must(release(1))
		w.refused(revoke(1, nil), lock.ErrTokenMismatch)
	})
}

func TestSweepEndsExpiredLeasesOnly(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1))
	if d := w.must(lock.Sweep{Locks: []string{name}}); d.Changed {
		t.Error("ended a lease that had not expired")
	}
	w.advance(10 * time.Second)
	if d := w.must(lock.Sweep{Locks: []string{name}}); len(d.Events) != 1 || d.Events[0].Kind != lock.Expired {
		t.Errorf("decided %+v", d)
	}
	if d := w.must(lock.Sweep{Locks: []string{name}}); d.Changed {
		t.Error("ended it twice")
	}
}

func TestLockTimeDoesNotRunBackwards(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1))
	w.advance(-time.Hour)
	d := w.must(release(1))
	if !d.Now.Equal(t0) || !d.Events[0].At.Equal(t0) {
		t.Errorf("decided at %v, before the grant at %v", d.Now, t0)
	}
}
