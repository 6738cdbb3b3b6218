package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestSharedLeases(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"share one token while any of them exists, and later ones have a greater token": `
			acquire 1 shared; after 1s
			acquire 2 shared -> token=1 slot=2
			release 1; acquire 3 shared -> token=1 slot=1
			release 2; release 3; acquire 4 shared -> token=2`,
		"block a writer, and wait behind one": `
			acquire 1 shared; acquire 2 shared; wait 3; wait 4 shared; wait 5 shared
			wait 6 -> [1 2 | 3 4 5 6]
			release 1 -> [2 | 3 4 5 6]
			release 2 -> [3 | 4 5 6]
			release 3 -> released granted#3 granted#3 wakes=4,5 [4 5 | 6]`,
		"expire one by one": `
			acquire 1 shared; after 4s; acquire 2 shared; wait 3; after 6s
			sweep -> expired due=4s [2 | 3]`,
	})
}

func TestSharedLeasesAreLimitedToMaxHolders(t *testing.T) {
	t.Parallel()
	full := lock.Record{Name: name, Token: 1}
	for slot := 1; slot < lock.MaxHolders; slot++ {
		full.Leases = append(full.Leases, lock.Lease{
			ID: lock.LeaseID{1: byte(slot / 256), 2: byte(slot)}, Mode: lock.Shared, Slot: slot, Token: 1, TTL: time.Hour, ExpiresAt: t0.Add(time.Hour),
		})
	}
	d := acquire(1, shared).Apply(lock.View{Now: t0, Locks: []lock.Record{full}})
	if d.Err != nil || leaseOf(d).Slot != lock.MaxHolders || leaseOf(d).Token != 1 {
		t.Errorf("decided %+v, %v", leaseOf(d), d.Err)
	}
	if d = acquire(2, shared).Apply(lock.View{Now: t0, Locks: d.Locks}); !errors.Is(d.Err, lock.ErrHeld) {
		t.Errorf("one lease more: %+v, %v", leaseOf(d), d.Err)
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"are limited to the capacity, each with its own token and slot": `
			acquire 1 permit=3 -> token=1 slot=1
			acquire 2 permit=3 -> token=2 slot=2
			acquire 3 permit=3 -> token=3 slot=3
			acquire 4 permit=3 -> !lock_held
			wait 4 permit=3 -> [1 2 3 | 4]`,
		"are refused with the time until the first of them ends": `
			acquire 1 permit=2; acquire 2 permit=2 ttl=3s
			acquire 3 permit=2 -> !lock_held retry=3s newest=2`,
		"use the smallest free slot": `
			acquire 1 permit=4; acquire 2 permit=4; acquire 3 permit=4; acquire 4 permit=4; release 3; release 1
			acquire 5 permit=4 -> slot=1
			acquire 6 permit=4 -> slot=3`,
		"with another capacity are refused while a permit is held": `
			acquire 1 permit=3
			acquire 2 permit=2 -> !capacity_mismatch capacity=3
			release 1; acquire 2 permit=2`,
		"with another capacity are refused while a permit is waited for": `
			acquire 1; wait 2 permit=3
			wait 3 permit=2 -> !capacity_mismatch
			release 2; wait 3 permit=2`,
		"wait behind a waiter of another mode": `
			acquire 1 permit=3; wait 2 shared
			acquire 3 permit=3 -> !lock_held
			wait 3 permit=3; wait 4 permit=3
			release 1 -> [2 | 3 4]
			release 2 -> [3 4 |]`,
	})
}
