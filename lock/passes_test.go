package lock_test

import (
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// TestWhoMayOvertakeInAQueue: only in the queue of a lock with locks below it may waiters be granted out of order.
func TestWhoMayOvertakeInAQueue(t *testing.T) {
	t.Parallel()
	here := func(m lock.Mode) lock.WaiterInfo { return lock.WaiterInfo{Mode: m} }
	below := func(m lock.Mode) lock.WaiterInfo { return lock.WaiterInfo{Mode: m, Name: "repo:a"} }
	for _, c := range []struct {
		later, earlier lock.WaiterInfo
		want           bool
	}{
		{here(lock.Exclusive), here(lock.Exclusive), false},
		{here(lock.Shared), here(lock.Shared), false},
		{here(lock.Permit), here(lock.Permit), false},
		{below(lock.Exclusive), below(lock.Exclusive), true},
		{below(lock.Shared), below(lock.Exclusive), true},
		{below(lock.Shared), here(lock.Shared), true},
		{here(lock.Shared), below(lock.Shared), true},
		{below(lock.Exclusive), here(lock.Shared), false},
		{here(lock.Shared), below(lock.Exclusive), false},
		{below(lock.Shared), here(lock.Exclusive), false},
		{here(lock.Exclusive), below(lock.Shared), false},
	} {
		if got := c.later.MayOvertake(c.earlier); got != c.want {
			t.Errorf("%s of %q may overtake %s of %q: %t, want %t", c.later.Mode, c.later.Name, c.earlier.Mode, c.earlier.Name, got, c.want)
		}
	}
}
