package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

// t0 is when the stories of these tests begin.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const name = "jobs:nightly"

func id(n byte) lock.LeaseID { return lock.LeaseID{15: n} }

// A world is one lock, its clock and its memory, without a store.
type world struct {
	t      testing.TB
	state  lock.State
	now    time.Time
	token  lock.Token
	ended  map[lock.LeaseRef]lock.Event
	events []lock.Event
}

func newWorld(t testing.TB) *world {
	return &world{t: t, state: lock.State{Name: name}, now: t0, ended: map[lock.LeaseRef]lock.Event{}}
}

// do applies the command as a store would, and checks what each decision must keep.
func (w *world) do(cmd lock.Command) lock.Decision {
	w.t.Helper()
	before := w.state
	drawn := 0
	d := cmd.Apply(lock.View{Now: w.now, Locks: []lock.State{w.state}, Ended: w.ended, Tokens: func() lock.Token {
		drawn++
		w.token++
		return w.token
	}})
	if !cmp.Equal(before, w.state) {
		w.t.Errorf("%T changed the state that it was given", cmd)
	}
	if tokens, events := cmd.Draws(); drawn > tokens || len(d.Events) > events {
		w.t.Errorf("%T drew %d tokens and made %d events, but said at most %d and %d", cmd, drawn, len(d.Events), tokens, events)
	}
	if !d.Changed && (len(d.Events) > 0 || !cmp.Equal(before, d.Locks[0])) {
		w.t.Errorf("%T changed the lock and says that it did not", cmd)
	}
	w.state = d.Locks[0]
	w.events = append(w.events, d.Events...)
	for _, e := range d.Events {
		if e.Ref != 0 {
			w.ended[e.Ref] = e
		}
	}
	return d
}

// must is do for a command that is not to be refused.
func (w *world) must(cmd lock.Command) lock.Decision {
	w.t.Helper()
	d := w.do(cmd)
	if d.Err != nil {
		w.t.Fatalf("%T: %v", cmd, d.Err)
	}
	return d
}

// refused is do for a command that is to be refused with the code.
func (w *world) refused(cmd lock.Command, code lock.Code) *lock.Error {
	w.t.Helper()
	d := w.do(cmd)
	e := new(lock.Error)
	if !errors.Is(d.Err, code) || !errors.As(d.Err, &e) {
		w.t.Fatalf("%T: %v, want %v", cmd, d.Err, code)
	}
	if e.Detail == "" {
		w.t.Errorf("%T: %v without a detail", cmd, code)
	}
	return e
}

func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

func acquire(n byte) lock.Acquire {
	return lock.Acquire{Name: name, LeaseID: id(n), Holder: "worker", Mode: lock.Exclusive, TTL: 10 * time.Second}
}

func renew(n byte) lock.Renew     { return lock.Renew{Name: name, LeaseID: id(n)} }
func release(n byte) lock.Release { return lock.Release{Name: name, LeaseID: id(n)} }

// inGrace returns a world whose lease 1 has ended and has half a second of grace left.
func inGrace(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	a := acquire(1)
	a.Grace = time.Second
	w.must(a)
	w.pass(10500 * time.Millisecond)
	return w
}

func TestAcquire(t *testing.T) {
	t.Parallel()
	t.Run("a free lock is granted with a token and a TTL from now", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		l := w.must(acquire(1)).Grant
		if l.Token != 1 || !l.AcquiredAt.Equal(t0) || !l.ExpiresAt.Equal(t0.Add(10*time.Second)) {
			t.Errorf("granted %+v", l)
		}
	})
	t.Run("a held lock is refused, naming the holder and the time until it is over", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := acquire(1)
		a.Holder, a.Grace = "the first", 2*time.Second
		w.must(a)
		w.pass(4 * time.Second)
		if e := w.refused(acquire(2), lock.ErrHeld); e.Holder != "the first" || e.RetryAfter != 8*time.Second {
			t.Errorf("refused with %+v", e)
		}
	})
}

func TestAcquireAgainWithTheSameLeaseID(t *testing.T) {
	t.Parallel()
	t.Run("the same lease_id is the same lease, with what remains now", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		first := w.must(acquire(1)).Grant
		w.pass(4 * time.Second)
		d := w.must(acquire(1))
		if !d.Replay || d.Changed || !cmp.Equal(d.Grant, first) {
			t.Errorf("replayed %+v, want %+v", d.Grant, first)
		}
	})
	t.Run("the same lease_id with another holder is refused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		a := acquire(1)
		a.Holder = "somebody else"
		w.refused(a, lock.ErrLeaseIDInUse)
	})
	t.Run("an ended lease is never granted again under its lease_id", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.must(release(1))
		if e := w.refused(acquire(1), lock.ErrLeaseLost); e.Ended != lock.Released {
			t.Errorf("refused with %+v", e)
		}
	})
	t.Run("nor when the acquire itself finds that it is over", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.pass(10 * time.Second)
		if e := w.refused(acquire(1), lock.ErrLeaseLost); e.Ended != lock.Expired {
			t.Errorf("refused with %+v", e)
		}
		if len(w.state.Leases) != 0 {
			t.Error("the expiry was not written down")
		}
	})
}

func TestAcquireAfterTheEnd(t *testing.T) {
	t.Parallel()
	t.Run("at the very instant of its end the lease is over, and the next token is greater", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.pass(10*time.Second - time.Nanosecond)
		w.refused(acquire(2), lock.ErrHeld)
		w.pass(time.Nanosecond)
		d := w.must(acquire(2))
		if d.Grant.Token != 2 || len(d.Events) != 2 || d.Events[0].Kind != lock.Expired || d.Events[1].Kind != lock.Granted {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("in the grace nobody else may have it", func(t *testing.T) {
		t.Parallel()
		w := inGrace(t)
		if p := w.state.Lock(w.now).Phase; p != lock.InGrace {
			t.Errorf("phase %q", p)
		}
		w.refused(acquire(2), lock.ErrHeld)
		w.pass(500 * time.Millisecond)
		w.must(acquire(2))
	})
	t.Run("a TTL beyond the greatest hold is cut", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := acquire(1)
		a.MaxHold = 3 * time.Second
		if l := w.must(a).Grant; !l.ExpiresAt.Equal(t0.Add(3 * time.Second)) {
			t.Errorf("expires at %v", l.ExpiresAt)
		}
	})
}

func TestRenew(t *testing.T) {
	t.Parallel()
	t.Run("moves the end to a TTL from now and keeps the token", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.pass(4 * time.Second)
		d := w.must(renew(1))
		if !d.Grant.ExpiresAt.Equal(t0.Add(14*time.Second)) || d.Grant.Token != 1 || len(d.Events) != 0 {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("never moves it back", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		r := renew(1)
		r.TTL = time.Second
		if l := w.must(r).Grant; !l.ExpiresAt.Equal(t0.Add(10*time.Second)) || l.TTL != time.Second {
			t.Errorf("renewed to %+v", l)
		}
	})
	t.Run("does not accumulate", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		for range 5 {
			w.must(renew(1))
		}
		if !w.state.Leases[0].ExpiresAt.Equal(t0.Add(10 * time.Second)) {
			t.Errorf("expires at %v", w.state.Leases[0].ExpiresAt)
		}
	})
	t.Run("never revives, even if nobody took the lock", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.pass(10 * time.Second)
		if e := w.refused(renew(1), lock.ErrLeaseLost); e.Ended != lock.Expired || e.Token != 1 {
			t.Errorf("refused with %+v", e)
		}
		w.refused(renew(1), lock.ErrLeaseLost)
	})
}

func TestRenewAtItsBounds(t *testing.T) {
	t.Parallel()
	t.Run("works in the grace", func(t *testing.T) {
		t.Parallel()
		w := inGrace(t)
		if l := w.must(renew(1)).Grant; !l.ExpiresAt.Equal(w.now.Add(10 * time.Second)) {
			t.Errorf("expires at %v", l.ExpiresAt)
		}
	})
	t.Run("never goes beyond the greatest hold", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		a := acquire(1)
		a.MaxHold, a.Grace = 12*time.Second, time.Minute
		w.must(a)
		w.pass(9 * time.Second)
		if l := w.must(renew(1)).Grant; !l.ExpiresAt.Equal(t0.Add(12 * time.Second)) {
			t.Errorf("expires at %v", l.ExpiresAt)
		}
		w.pass(3 * time.Second)
		w.refused(renew(1), lock.ErrLeaseLost)
	})
	t.Run("is refused for a lease that nobody knows", func(t *testing.T) {
		t.Parallel()
		if e := newWorld(t).refused(renew(9), lock.ErrLeaseLost); e.Ended != 0 {
			t.Errorf("refused with %+v", e)
		}
	})
}

func TestRelease(t *testing.T) {
	t.Parallel()
	t.Run("frees the lock, and again changes nothing", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.must(release(1))
		if d := w.must(release(1)); d.Changed || w.state.Lock(w.now).Phase != lock.Free {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("again after others held the lock still succeeds, and takes nothing from them", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.must(release(1))
		w.must(acquire(2))
		w.must(release(1))
		w.must(renew(2))
	})
	t.Run("of a lease that expired says so", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.pass(time.Hour)
		if e := w.refused(release(1), lock.ErrLeaseLost); e.Ended != lock.Expired || !e.EndedAt.Equal(w.now) {
			t.Errorf("refused with %+v", e)
		}
	})
	t.Run("works in the grace", func(t *testing.T) {
		t.Parallel()
		w := inGrace(t)
		w.must(release(1))
	})
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	revoke := func(token lock.Token) lock.Revoke {
		return lock.Revoke{Name: name, Token: token, Reason: "maintenance"}
	}
	t.Run("ends the lease, and its holder learns why", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.must(revoke(1))
		if e := w.refused(renew(1), lock.ErrLeaseLost); e.Ended != lock.Revoked || e.Reason != "maintenance" {
			t.Errorf("refused with %+v", e)
		}
		if d := w.must(acquire(2)); d.Grant.Token != 2 {
			t.Errorf("next token %d", d.Grant.Token)
		}
	})
	t.Run("again succeeds while nobody was granted the lock since", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.must(acquire(1))
		w.must(revoke(1))
		if d := w.must(revoke(1)); d.Changed {
			t.Error("revoked twice")
		}
		w.must(acquire(2))
		w.refused(revoke(1), lock.ErrTokenMismatch)
	})
	t.Run("of a token that does not hold the lock is refused", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.refused(revoke(7), lock.ErrTokenMismatch)
		w.must(acquire(1))
		if e := w.refused(revoke(7), lock.ErrTokenMismatch); e.Token != 7 || e.Newest != 1 {
			t.Errorf("refused with %+v", e)
		}
		w.must(release(1))
		w.refused(revoke(1), lock.ErrTokenMismatch)
	})
}

func TestExpireEndsWhatIsOverAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(acquire(1))
	if d := w.must(lock.Expire{Name: name}); d.Changed {
		t.Error("ended a lease that was not over")
	}
	w.pass(10 * time.Second)
	if d := w.must(lock.Expire{Name: name}); len(d.Events) != 1 || d.Events[0].Kind != lock.Expired {
		t.Errorf("decided %+v", d)
	}
	if d := w.must(lock.Expire{Name: name}); d.Changed {
		t.Error("ended it twice")
	}
}

func TestALocksTimeDoesNotRunBackwards(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(acquire(1))
	w.pass(-time.Hour)
	d := w.must(release(1))
	if !d.Now.Equal(t0) || !d.Events[0].At.Equal(t0) {
		t.Errorf("decided at %v, before the grant at %v", d.Now, t0)
	}
}
