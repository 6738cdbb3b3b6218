package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// unclaimedGrant returns a model in which replica 1 has granted the lock to 2, which waits on replica 2, ahead of 3
// on replica 1. The grant is unclaimed.
func unclaimedGrant(t *testing.T) (*model, lock.Acquire) {
	t.Helper()
	w := newModel(t)
	w.must(acquire(1))
	call := w.on(2).enqueue(2, func(a *lock.Acquire) { a.Grace = 2 * time.Second })
	w.on(1).enqueue(3)
	w.advance(time.Second)
	w.must(release(1))
	w.expect("2? | 2 3")
	return w, call
}

func TestRemoteGrant(t *testing.T) {
	t.Parallel()
	t.Run("is unclaimed, and its TTL starts with the claim", func(t *testing.T) {
		t.Parallel()
		w, call := unclaimedGrant(t)
		if l := w.record.Leases[0]; !l.ClaimDeadline.Equal(w.now.Add(lock.ClaimTimeout)) ||
			!l.EndsAt().Equal(l.ClaimDeadline) ||
			!l.ExpiresAt.Equal(l.ClaimDeadline) {
			t.Errorf("granted %+v", l)
		}
		w.advance(lock.ClaimTimeout - time.Millisecond)
		d := w.on(2).must(claim(call))
		if l := d.Lease; l.Token != 2 || l.Unclaimed() || !l.AcquiredAt.Equal(w.now) ||
			!l.ExpiresAt.Equal(w.now.Add(10*time.Second)) {
			t.Errorf("granted %+v", l)
		}
		if len(d.Events) != 0 {
			t.Errorf("claiming it emitted the events %v", kinds(d))
		}
		w.expect("2 | 3")
		if d := w.must(claim(call)); d.Changed {
			t.Error("claimed it twice")
		}
	})
	t.Run("blocks all others", func(t *testing.T) {
		t.Parallel()
		w, _ := unclaimedGrant(t)
		if e := w.refused(acquire(9), lock.ErrHeld); e.RetryAfter != lock.ClaimTimeout || e.Ahead != 1 {
			t.Errorf("refused with %+v", e)
		}
	})
	t.Run("is claimed by a repeated call on any replica", func(t *testing.T) {
		t.Parallel()
		w, call := unclaimedGrant(t)
		again := w.on(1).call(acquire(2))
		if d := w.must(again); d.Replayed || d.Queued || d.Lease.Unclaimed() {
			t.Errorf("decided %+v", d)
		}
		w.on(2).refused(claim(call), lock.ErrHeld)
		w.do(disconnect(call))
		w.on(1).expect("2 | 3")
		w.must(disconnect(again))
		w.expect("3 | (2)")
	})
}

func TestRemoteGrantEnds(t *testing.T) {
	t.Parallel()
	t.Run("is withdrawn when the client disconnects, and its place is kept", func(t *testing.T) {
		t.Parallel()
		w, call := unclaimedGrant(t)
		if d := w.on(2).must(disconnect(call)); kinds(d) != "withdrawn granted " {
			t.Errorf("decided %v", kinds(d))
		}
		w.expect("3? | (2) 3")
	})
	t.Run("is claimed by a renewal", func(t *testing.T) {
		t.Parallel()
		w, call := unclaimedGrant(t)
		w.advance(time.Second)
		if l := w.must(renew(2)).Lease; l.Unclaimed() || !l.ExpiresAt.Equal(w.now.Add(10*time.Second)) ||
			!l.AcquiredAt.Equal(w.now) {
			t.Errorf("renewed %+v", l)
		}
		w.expect("2 | 3")
		w.on(2).do(disconnect(call))
		w.on(1).expect("2 | 3")
	})
	t.Run("can be released and revoked", func(t *testing.T) {
		t.Parallel()
		w, call := unclaimedGrant(t)
		w.must(release(2))
		w.expect("3 |")
		w.on(2).refused(claim(call), lock.ErrLeaseLost)
		w, call = unclaimedGrant(t)
		w.must(revoke(2, nil))
		w.expect("3 |")
		w.on(2).refused(endWait(call), lock.ErrLeaseLost)
	})
}

// deadReplica returns unclaimedGrant after replica 2 has died.
func deadReplica(t *testing.T) (*model, lock.Acquire) {
	t.Helper()
	w, call := unclaimedGrant(t)
	w.silence(2)
	return w, call
}

func TestUnclaimedGrant(t *testing.T) {
	t.Parallel()
	t.Run("is withdrawn, and the next waiter is granted the lock at once", func(t *testing.T) {
		t.Parallel()
		w, _ := deadReplica(t)
		w.advance(lock.ClaimTimeout - 1)
		if d := w.must(sweep); d.Changed || !d.Due.Equal(w.now.Add(1)) {
			t.Errorf("decided %+v", d)
		}
		w.advance(1)
		d := w.must(sweep)
		if e := d.Events[0]; kinds(d) != "withdrawn granted " || e.Ref != 0 ||
			e.Reason != "grant not claimed in time" {
			t.Errorf("decided %+v", d)
		}
		w.expect("3 | (2)")
	})
	t.Run("is not granted again while the replica is dead", func(t *testing.T) {
		t.Parallel()
		w, _ := deadReplica(t)
		w.advance(lock.ClaimTimeout)
		w.must(release(3))
		w.expect("| (2)")
		w.must(acquire(4))
		w.advance(40 * time.Second)
		w.must(sweep)
		w.expect("|")
		if d := w.must(sweep); d.Changed || !d.Due.IsZero() {
			t.Errorf("decided %+v", d)
		}
	})
}

func TestPlaceAfterAWithdrawnGrant(t *testing.T) {
	t.Parallel()
	t.Run("is kept until the end of its retention", func(t *testing.T) {
		t.Parallel()
		w, call := deadReplica(t)
		w.advance(lock.ClaimTimeout)
		w.must(sweep)
		w.expect("3 | (2)")
		w.enqueue(4)
		w.unsilence(2)
		w.expect("3 | 2 4")
		if d := w.on(2).must(claim(call)); !d.Queued {
			t.Errorf("decided %+v", d)
		}
		w.on(1).must(release(3))
		w.expect("2? | 2 4")
		w.on(2).must(claim(call))
		w.expect("2 | 4")
	})
	t.Run("is granted again if its replica is alive", func(t *testing.T) {
		t.Parallel()
		w, call := unclaimedGrant(t)
		w.advance(lock.ClaimTimeout)
		if d := w.must(sweep); kinds(d) != "withdrawn granted " || d.Events[1].Place != 2 || d.Events[1].Token != 3 {
			t.Errorf("decided %+v", d)
		}
		w.expect("2? | 2 3")
		w.on(2).must(claim(call))
	})
	t.Run("does not affect other shared leases", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.on(2).enqueue(2, shared)
		w.silence(2)
		w.on(1).enqueue(3, shared)
		w.must(release(1))
		w.expect("2? 3 | 2")
		w.advance(lock.ClaimTimeout)
		w.must(sweep)
		w.expect("3 | (2)")
		if l := w.must(acquire(4, shared)).Lease; l.Token != 2 || l.Slot != 1 {
			t.Errorf("granted %+v", l)
		}
	})
}

func TestDeadReplica(t *testing.T) {
	t.Parallel()
	t.Run("has its waiters skipped by others, but not by itself", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		call := w.on(2).enqueue(2)
		w.on(1).enqueue(3)
		w.silence(2)
		w.advance(lock.ReplicaTTL - 1)
		w.expect("1 | 2 3")
		w.advance(1)
		w.expect("1 | (2) 3")
		w.on(2).expect("1 | 2 3")
		w.must(release(1)) // it had only lost its heartbeat
		w.expect("2 | 3")
		if d := w.must(claim(call)); d.Lease.ID != id(2) {
			t.Errorf("decided %+v", d)
		}
	})
}

func TestReplicaTTL(t *testing.T) {
	t.Parallel()
	t.Run("its end is due for a replica with a waiter behind", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared, func(a *lock.Acquire) { a.TTL = time.Minute }))
		w.on(2).enqueue(2)
		w.silence(2)
		w.advance(time.Second)
		if d := w.on(1).must(sweep); !d.Due.Equal(t0.Add(20 * time.Second)) {
			t.Errorf("no waiter is behind, and it is due at %v", d.Due)
		}
		call := w.call(acquire(3, shared))
		d := w.must(call)
		if !d.Due.Equal(t0.Add(lock.ReplicaTTL)) {
			t.Errorf("due at %v", d.Due)
		}
		w.advance(d.Due.Sub(w.now))
		if d := w.must(sweep); kinds(d) != "granted " {
			t.Errorf("decided %+v", d)
		}
		w.expect("1 3 | (2)")
	})
	t.Run("its end keeps the places until the waits and their retention are over", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, func(a *lock.Acquire) { a.TTL = time.Hour }))
		w.on(2).enqueue(2)
		w.silence(2)
		w.on(1).advance(20*time.Second + lock.PlaceRetention - 1)
		w.must(sweep)
		w.expect("1 | (2)")
		w.advance(1)
		w.must(sweep)
		w.expect("1 |")
	})
}
