package lock_test

import (
	"errors"
	"slices"
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

func TestSeveralPermits(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"are one lease with one token, and a slot each": `
			acquire 1 permit=5/2 -> token=1 slot=1 slots=1,2
			acquire 2 permit=5 -> token=2 slot=3 slots=
			acquire 3 permit=5/2 -> token=3 slot=4 slots=4,5
			acquire 4 permit=5 -> !lock_held`,
		"are granted all or none": `
			acquire 1 permit=5/3
			acquire 2 permit=5/3 -> !lock_held [1 |]
			acquire 3 permit=5/2 -> slots=4,5`,
		"need no slots side by side": `
			acquire 1 permit=4; acquire 2 permit=4; acquire 3 permit=4; acquire 4 permit=4; release 1; release 3
			acquire 5 permit=4/2 -> slot=1 slots=1,3`,
		"up to all of them": `
			acquire 1 permit=3/3 -> slots=1,2,3
			acquire 2 permit=3 -> !lock_held; release 1; acquire 2 permit=3/3`,
		"keep those behind them waiting, and are not overtaken by fewer": `
			acquire 1 permit=5/3; wait 2 permit=5/5; wait 3 permit=5
			acquire 5 permit=5 -> !lock_held
			acquire 4 permit=5/2 -> !lock_held
			release 1 -> [2 | 3]
			release 2 -> [3 |]`,
		"are granted together with those behind them": `
			acquire 1 permit=5/5; wait 2 permit=5/2; wait 3 permit=5/2; wait 4 permit=5/2; wait 5 permit=5
			release 1 -> released granted#2 granted#3 [2 3 | 4 5]`,
		"are renewed, released and revoked as one": `
			acquire 1 permit=3/2; after 5s
			renew 1 -> slots=1,2; after 8s
			release 1 -> released [|]
			acquire 2 permit=3/2
			revoke 2 slot=2 -> revoked [|]`,
		"expire as one, after their grace": `
			acquire 1 permit=3/2 grace=2s; wait 2 permit=3/2; after 11s
			sweep -> [1 | 2]; after 1s
			sweep -> expired granted [2 |]`,
		"keep their slots for the grace of a revocation": `
			acquire 1 permit=3/2 grace=5s
			revoke 1 slot=2 -> [1! |]
			acquire 2 permit=3 -> slot=3
			acquire 3 permit=3 -> !lock_held retry=5s`,
		"are refused with the time until enough of them end": `
			acquire 1 permit=3 ttl=3s; acquire 2 permit=3 ttl=7s; acquire 3 permit=3 ttl=5s
			acquire 4 permit=3 -> !lock_held retry=3s
			acquire 4 permit=3/2 -> !lock_held retry=5s
			acquire 4 permit=3/3 -> !lock_held retry=7s`,
		"are found again by their number only": `
			acquire 1 permit=3/2
			acquire 1 permit=3/2 -> nothing slots=1,2
			acquire 1 permit=3 -> !lease_id_in_use
			wait 2 permit=3/2
			wait 2 permit=3/3 -> !lease_id_in_use
			wait 2 permit=3/2 -> [1 | 2]`,
		"are those of the place when its call returns": `
			acquire 1; wait 2 permit=3/2; wait 3 permit=3; release 1 -> [2 3 |]
			cut 2 -> [3 | (2)]
			wait 2 permit=3 -> !lease_id_in_use
			call 2 permit=3/2 -> granted@2 slots=1,2 [3 2 |]`,
		"are skipped while a rule allows fewer, and granted when it allows more": `
			rule jobs: capacity=5; acquire 1 permit=5/4; wait 2 permit=5/5; wait 3 permit=5/2
			rule jobs: capacity=3; release 1 -> released granted#2 [3 | 2]
			acquire 4 permit=3 -> slot=3 [3 4 | 2]; release 4
			rule jobs: capacity=5
			sweep -> [3 | 2]
			acquire 5 permit=5 -> !lock_held
			release 3 -> [2 |]`,
		"are refused at the end of a wait if a rule allows fewer": `
			rule jobs: capacity=5; acquire 1 permit=5/4; wait 2 permit=5/5
			rule jobs: capacity=3
			leave 2 keep -> !invalid_request [1 |]`,
		"are as many as before a rule allows fewer, and no more": `
			rule jobs: capacity=5; acquire 1 permit=5/4; acquire 2 permit=5
			rule jobs: capacity=3
			acquire 3 permit=3 -> !lock_held
			release 2; acquire 3 permit=3 -> !lock_held
			release 1; acquire 3 permit=3/3 -> slots=1,2,3`,
		"of another replica wait with their number until they are claimed": `
			acquire 1; on 2; wait 2 permit=3/2; on 1
			release 1 -> [2? | 2]
			acquire 3 permit=3/2 -> !lock_held; after 2s; on 2
			sweep -> withdrawn@2(grant not claimed in time) granted@2 [2 |]`,
	})
}

// TestARefusalOfPermitsSaysHowManyAreOut, and how many are asked for if that is more than one.
func TestARefusalOfPermitsSaysHowManyAreOut(t *testing.T) {
	t.Parallel()
	w := newModel(t)
	w.must(acquire(1, permits(5, 3)))
	w.must(acquire(2, permits(5, 1)))
	const several = `"worker" and 1 more hold 4 of 5 permits, 3 asked for. Retry later, or wait with wait_ms (not in a batch); ` +
		`enough leases end in 10 s unless they are renewed.`
	if e := w.refused(acquire(3, permits(5, 3)), lock.ErrHeld); e.Detail != several {
		t.Errorf("three permits are refused with %s", e.Detail)
	}
	w.must(acquire(4, permits(5, 1)))
	const one = `"worker" and 2 more hold 5 of 5 permits. Retry later, or wait with wait_ms (not in a batch); ` +
		`a lease ends in 10 s unless it is renewed.`
	if e := w.refused(acquire(5, permits(5, 1)), lock.ErrHeld); e.Detail != one {
		t.Errorf("one permit is refused with %s", e.Detail)
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		numbers []int
		text    lock.Slots
	}{{nil, ""}, {[]int{7}, ""}, {[]int{1, 2}, "1 2"}, {[]int{3, 10, 1000}, "3 10 1000"}} {
		s := lock.SlotsOf(c.numbers)
		first := 7
		if len(c.numbers) > 0 {
			first = c.numbers[0]
		}
		if s != c.text || !s.IsValid(first) || len(s.All(first)) != s.Count() || s.Count() != max(len(c.numbers), 1) {
			t.Errorf("%v are %q: %v", c.numbers, s, s.All(first))
		}
		for slot := range 1001 {
			if want := slot == first || slices.Contains(c.numbers, slot); s.Include(first, slot) != want {
				t.Errorf("%q include %d: %t", s, slot, !want)
			}
		}
	}
	for _, bad := range []lock.Slots{" ", "1", "2 3", "1 1", "1 3 2", "1 1001", "01 2", "1  2", "1 2 ", "1 x", "0 1", "-1 1"} {
		if bad.IsValid(1) {
			t.Errorf("%q are valid", bad)
		}
	}
}
