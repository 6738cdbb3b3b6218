package lock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

// inGrace returns a model whose lease 1 has expired and has half a second of grace left.
func inGrace(t *testing.T) *model {
	t.Helper()
	w := newModel(t)
	a := acquire(1)
	a.Grace = time.Second
	w.must(a)
	w.advance(10500 * time.Millisecond)
	return w
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	t.Run("a free lock is granted with a token and a TTL from now", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		l := w.must(acquire(1)).Lease
		if l.Token != 1 || !l.AcquiredAt.Equal(t0) || !l.ExpiresAt.Equal(t0.Add(10*time.Second)) {
			t.Errorf("granted %+v", l)
		}
	})
	t.Run("a held lock is refused with its holder and the time until the lease ends", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		a := acquire(1)
		a.Holder, a.Grace = "the first", 2*time.Second
		w.must(a)
		w.advance(4 * time.Second)
		if e := w.refused(acquire(2), lock.ErrHeld); e.Holder != "the first" || e.RetryAfter != 8*time.Second {
			t.Errorf("refused with %+v", e)
		}
	})
}

func TestAcquireAgainWithTheSameLeaseID(t *testing.T) {
	t.Parallel()
	t.Run("the same lease_id returns the same lease with its remaining time", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		first := w.must(acquire(1)).Lease
		w.advance(4 * time.Second)
		d := w.must(acquire(1))
		if !d.Replayed || d.Changed || !cmp.Equal(d.Lease, first) {
			t.Errorf("replayed %+v, want %+v", d.Lease, first)
		}
	})
	t.Run("other times and metadata change nothing", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		first := w.must(acquire(1)).Lease
		d := w.must(acquire(1, func(a *lock.Acquire) {
			a.TTL, a.Grace, a.MaxHold, a.Metadata = time.Hour, time.Second, time.Minute, []byte(`{}`)
		}))
		if !d.Replayed || d.Changed || !cmp.Equal(d.Lease, first) {
			t.Errorf("replayed %+v, want %+v", d.Lease, first)
		}
	})
	t.Run("the same lease_id with another holder is refused", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		a := acquire(1)
		a.Holder = "another holder"
		w.refused(a, lock.ErrLeaseIDInUse)
	})
}

func TestEndedLeaseIsNeverGrantedAgain(t *testing.T) {
	t.Parallel()
	t.Run("after a release", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.must(release(1))
		if e := w.refused(acquire(1), lock.ErrLeaseLost); e.Ended != lock.Released {
			t.Errorf("refused with %+v", e)
		}
	})
	t.Run("when the acquire itself records the expiry", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.advance(10 * time.Second)
		if e := w.refused(acquire(1), lock.ErrLeaseLost); e.Ended != lock.Expired {
			t.Errorf("refused with %+v", e)
		}
		if len(w.record.Leases) != 0 {
			t.Error("the expiry was not recorded")
		}
	})
}

func TestAcquireAfterExpiry(t *testing.T) {
	t.Parallel()
	t.Run("the lease ends exactly at its expiry, and the next token is greater", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.advance(10*time.Second - time.Nanosecond)
		w.refused(acquire(2), lock.ErrHeld)
		w.advance(time.Nanosecond)
		d := w.must(acquire(2))
		if d.Lease.Token != 2 || len(d.Events) != 2 || d.Events[0].Kind != lock.Expired ||
			d.Events[1].Kind != lock.Granted {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("no other client is granted the lock during the grace", func(t *testing.T) {
		t.Parallel()
		w := inGrace(t)
		if p := w.record.Lock(w.now).State; p != lock.InGrace {
			t.Errorf("state %q", p)
		}
		w.refused(acquire(2), lock.ErrHeld)
		w.advance(500 * time.Millisecond)
		w.must(acquire(2))
	})
	t.Run("a TTL beyond the max hold is cut", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		a := acquire(1)
		a.MaxHold = 3 * time.Second
		if l := w.must(a).Lease; !l.ExpiresAt.Equal(t0.Add(3 * time.Second)) {
			t.Errorf("expires at %v", l.ExpiresAt)
		}
	})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	t.Run("moves the expiry to a TTL from now and keeps the token", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.advance(4 * time.Second)
		d := w.must(renew(1))
		if !d.Lease.ExpiresAt.Equal(t0.Add(14*time.Second)) || d.Lease.Token != 1 || len(d.Events) != 0 {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("never moves the expiry back", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		r := renew(1)
		r.TTL = time.Second
		if l := w.must(r).Lease; !l.ExpiresAt.Equal(t0.Add(10*time.Second)) || l.TTL != time.Second {
			t.Errorf("renewed to %+v", l)
		}
	})
	t.Run("does not accumulate", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		for range 5 {
			w.must(renew(1))
		}
		if !w.record.Leases[0].ExpiresAt.Equal(t0.Add(10 * time.Second)) {
			t.Errorf("expires at %v", w.record.Leases[0].ExpiresAt)
		}
	})
}

func TestRenewNeverRevives(t *testing.T) {
	t.Parallel()
	t.Run("an expired lease cannot be renewed even if the lock is free", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.advance(10 * time.Second)
		if e := w.refused(renew(1), lock.ErrLeaseLost); e.Ended != lock.Expired || e.Token != 1 {
			t.Errorf("refused with %+v", e)
		}
		w.refused(renew(1), lock.ErrLeaseLost)
	})
}

func TestRenewAtItsBounds(t *testing.T) {
	t.Parallel()
	t.Run("works during the grace", func(t *testing.T) {
		t.Parallel()
		w := inGrace(t)
		if l := w.must(renew(1)).Lease; !l.ExpiresAt.Equal(w.now.Add(10 * time.Second)) {
			t.Errorf("expires at %v", l.ExpiresAt)
		}
	})
	t.Run("never goes beyond the max hold", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		a := acquire(1)
		a.MaxHold, a.Grace = 12*time.Second, time.Minute
		w.must(a)
		w.advance(9 * time.Second)
		if l := w.must(renew(1)).Lease; !l.ExpiresAt.Equal(t0.Add(12 * time.Second)) {
			t.Errorf("expires at %v", l.ExpiresAt)
		}
		w.advance(3 * time.Second)
		w.refused(renew(1), lock.ErrLeaseLost)
	})
	t.Run("is refused for an unknown lease", func(t *testing.T) {
		t.Parallel()
		if e := newModel(t).refused(renew(9), lock.ErrLeaseLost); e.Ended != 0 {
			t.Errorf("refused with %+v", e)
		}
	})
}
