package web

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// maxBlockers is how many of the leases that a waiter waits for are named.
const maxBlockers = 3

// A queue is who waits, in words.
type queue struct {
	Waiters []waiter
	Count   int // also of those not shown
	More    int // how many wait behind those shown
	Away    int // at how many places nobody waits now
}

// A waiter is a place in a queue.
type waiter struct {
	lock.WaiterInfo
	Waited elapsed
	Kept   timeLeft
	For    []blocker
	More   int    // how many leases are in its way beside those
	Others string // how many are served before
}

// A blocker is a lease that a waiter waits for.
type blocker struct {
	lock.LeaseInfo
	Left timeLeft
	Over timeLeft // until it is over for others
}

// Slotted is whether it takes the slot to tell the lease from others.
func (b blocker) Slotted() bool { return b.Mode != lock.Exclusive }

func queueOf(q lock.QueueInfo, here location) queue {
	v := queue{Count: len(q.Waiters)}
	for i, w := range q.Waiters {
		if !w.Attached {
			v.Away++
		}
		if i < maxShown || here.All {
			v.Waiters = append(v.Waiters, waiterOf(w, q.AsOf))
		}
	}
	v.More = v.Count - len(v.Waiters)
	return v
}

func waiterOf(w lock.WaiterInfo, asOf time.Time) waiter {
	v := waiter{
		WaiterInfo: w, Waited: elapsed(w.Waited), Kept: timeLeft(w.KeptFor), Others: countOf(w.Ahead, "other", "others"),
	}
	for _, h := range w.Leases[:min(len(w.Leases), maxBlockers)] {
		v.For = append(v.For, blocker{LeaseInfo: h, Left: timeLeft(h.Remaining), Over: timeLeft(h.ExpiresAt.Add(h.Grace).Sub(asOf))})
	}
	v.More = len(w.Leases) - len(v.For)
	return v
}
