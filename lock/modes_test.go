package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestSharedLeases(t *testing.T) {
	t.Parallel()
	t.Run("share one token while any of them exists, and later ones have a greater token", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared))
		w.advance(time.Second)
		second := w.must(acquire(2, shared)).Lease
		w.must(release(1))
		third := w.must(acquire(3, shared)).Lease
		if second.Token != 1 || third.Token != 1 || second.Slot != 2 || third.Slot != 1 {
			t.Errorf("granted %+v and %+v", second, third)
		}
		w.must(release(2))
		w.must(release(3))
		if l := w.must(acquire(4, shared)).Lease; l.Token != 2 {
			t.Errorf("the next reader has token %d", l.Token)
		}
	})
	t.Run("block a writer, and wait behind one", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared))
		w.must(acquire(2, shared))
		w.enqueue(3)
		w.enqueue(4, shared)
		w.enqueue(5, shared)
		w.enqueue(6)
		w.expect("1 2 | 3 4 5 6")
		w.must(release(1))
		w.expect("2 | 3 4 5 6")
		w.must(release(2))
		w.expect("3 | 4 5 6")
		if d := w.must(release(3)); len(d.Promoted) != 2 || d.Events[1].Token != d.Events[2].Token ||
			d.Events[1].Token != 3 {
			t.Errorf("decided %+v", d.Events)
		}
		w.expect("4 5 | 6")
	})
}

func TestSeveralSharedLeases(t *testing.T) {
	t.Parallel()
	t.Run("expire one by one", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared))
		w.advance(4 * time.Second)
		w.must(acquire(2, shared))
		w.enqueue(3)
		w.advance(6 * time.Second)
		d := w.must(sweep)
		w.expect("2 | 3")
		if kinds(d) != "expired " || !d.Due.Equal(w.now.Add(4*time.Second)) {
			t.Errorf("decided %+v", d)
		}
	})
	t.Run("are limited to MaxHolders", func(t *testing.T) {
		t.Parallel()
		full := lock.Record{Name: name, Token: 1}
		for slot := 1; slot < lock.MaxHolders; slot++ {
			reader := lock.LeaseID{1: byte(slot / 256), 2: byte(slot)}
			full.Leases = append(
				full.Leases,
				lock.Lease{
					ID:        reader,
					Mode:      lock.Shared,
					Slot:      slot,
					Token:     1,
					TTL:       time.Hour,
					ExpiresAt: t0.Add(time.Hour),
				},
			)
		}
		d := acquire(1, shared).Apply(lock.View{Now: t0, Locks: []lock.Record{full}})
		if d.Err != nil || d.Lease.Slot != lock.MaxHolders || d.Lease.Token != 1 {
			t.Errorf("decided %+v, %v", d.Lease, d.Err)
		}
		if d = acquire(2, shared).Apply(lock.View{Now: t0, Locks: d.Locks}); !errors.Is(d.Err, lock.ErrHeld) {
			t.Errorf("one lease more: %+v, %v", d.Lease, d.Err)
		}
	})
}

func TestPermits(t *testing.T) {
	t.Parallel()
	t.Run("are limited to the capacity, each with its own token and slot", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		for n := byte(1); n <= 3; n++ {
			if l := w.must(acquire(n, permit(3))).Lease; l.Token != lock.Token(n) || l.Slot != int(n) {
				t.Errorf("granted %+v", l)
			}
		}
		w.refused(acquire(4, permit(3)), lock.ErrHeld)
		w.enqueue(4, permit(3))
		w.expect("1 2 3 | 4")
	})
	t.Run("are refused with the time until the first of them ends", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, permit(2)))
		w.must(acquire(2, permit(2), func(a *lock.Acquire) { a.TTL = 3 * time.Second }))
		if e := w.refused(acquire(3, permit(2)), lock.ErrHeld); e.RetryAfter != 3*time.Second || e.Newest != 2 {
			t.Errorf("refused with %+v", e)
		}
	})
	t.Run("use the smallest free slot", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		for n := byte(1); n <= 4; n++ {
			w.must(acquire(n, permit(4)))
		}
		w.must(release(3))
		w.must(release(1))
		first, second := w.must(acquire(5, permit(4))).Lease, w.must(acquire(6, permit(4))).Lease
		if first.Slot != 1 || second.Slot != 3 {
			t.Errorf("the slots are %d and %d, want 1 and 3", first.Slot, second.Slot)
		}
	})
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	t.Run("another capacity is refused while a permit is held", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, permit(3)))
		if e := w.refused(acquire(2, permit(2)), lock.ErrCapacityMismatch); e.Capacity != 3 {
			t.Errorf("refused with %+v", e)
		}
		w.must(release(1))
		w.must(acquire(2, permit(2)))
	})
	t.Run("another capacity is refused while a permit is waited for", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1))
		w.enqueue(2, permit(3))
		w.refused(w.call(acquire(3, permit(2))), lock.ErrCapacityMismatch)
		w.must(release(2))
		w.enqueue(3, permit(2))
	})
	t.Run("permits wait behind a waiter of another mode", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, permit(3)))
		w.enqueue(2, shared)
		w.refused(acquire(3, permit(3)), lock.ErrHeld)
		w.enqueue(3, permit(3))
		w.enqueue(4, permit(3))
		w.must(release(1))
		w.expect("2 | 3 4")
		w.must(release(2))
		w.expect("3 4 |")
	})
}

func revoke(token lock.Token, slot *int) lock.Revoke {
	return lock.Revoke{Name: name, Token: token, Slot: slot, Reason: "maintenance"}
}

func slot(n int) *int { return &n }

// threeReaders returns a model in which 1, 2 and 3 share the lock and 4 waits for an exclusive lease.
func threeReaders(t *testing.T) *model {
	t.Helper()
	w := newModel(t)
	for n := byte(1); n <= 3; n++ {
		w.must(acquire(n, shared))
	}
	w.enqueue(4)
	return w
}

func TestRevokeSharedLeases(t *testing.T) {
	t.Parallel()
	t.Run("ends all shared leases with the token, and promotes the waiter", func(t *testing.T) {
		t.Parallel()
		w := threeReaders(t)
		if d := w.must(revoke(1, nil)); kinds(d) != "revoked revoked revoked granted " {
			t.Errorf("decided %v", kinds(d))
		}
		for n := byte(1); n <= 3; n++ {
			if e := w.refused(renew(n), lock.ErrLeaseLost); e.Ended != lock.Revoked || e.Reason != "maintenance" {
				t.Errorf("refused with %+v", e)
			}
		}
		w.expect("4 |")
	})
	t.Run("ends only the lease in the given slot", func(t *testing.T) {
		t.Parallel()
		w := threeReaders(t)
		w.must(revoke(1, slot(2)))
		w.expect("1 3 | 4")
		w.refused(renew(2), lock.ErrLeaseLost)
		w.refused(revoke(1, slot(2)), lock.ErrTokenMismatch)
	})
}

func TestRevokePermitOrLaterReader(t *testing.T) {
	t.Parallel()
	t.Run("ends a permit by its token", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, permit(2)))
		w.must(acquire(2, permit(2)))
		w.enqueue(3, permit(2))
		w.refused(revoke(1, slot(2)), lock.ErrTokenMismatch)
		w.must(revoke(1, nil))
		w.expect("2 3 |")
	})
	t.Run("does not end a later reader in the same slot with the same token", func(t *testing.T) {
		t.Parallel()
		w := threeReaders(t)
		selected := revoke(1, slot(2))
		selected.AcquiredAt = w.record.Leases[1].AcquiredAt
		w.must(release(2))
		w.must(release(4)) // which blocks readers
		w.advance(time.Second)
		w.must(acquire(5, shared))
		w.refused(selected, lock.ErrTokenMismatch)
		w.expect("1 3 5 |")
		selected.AcquiredAt = w.now
		w.must(selected)
		w.expect("1 3 |")
	})
	t.Run("ends a reader granted in the same decision without a notification", func(t *testing.T) {
		t.Parallel()
		w := newModel(t)
		w.must(acquire(1, shared, func(a *lock.Acquire) { a.TTL = time.Hour }))
		w.enqueue(2, func(a *lock.Acquire) { a.Wait = time.Second })
		w.enqueue(3, shared)
		w.advance(2 * time.Second)
		if d := w.must(revoke(1, nil)); kinds(d) != "granted revoked revoked " || len(d.Promoted) != 0 {
			t.Errorf("decided %v, promoted %+v", kinds(d), d.Promoted)
		}
	})
}
