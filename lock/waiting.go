package lock

import "time"

// A QueueInfo is who waits for a lock, as of an instant. It holds no secret.
type QueueInfo struct {
	Name     string
	Revision int64
	AsOf     time.Time
	Waiters  []WaiterInfo // in the order in which they are served
}

// A WaiterInfo is what anybody may know of a waiter.
type WaiterInfo struct {
	Position  int   // 1 for the first
	Place     int64 // the lock's revision when it joined; the event that says so has it, too
	Mode      Mode
	Capacity  int // of a permit
	Holder    string
	JoinedAt  time.Time
	Waited    time.Duration // as of the queue's AsOf
	Attached  bool          // whether a call waits there now
	KeptFor   time.Duration // if none does: for how long the place is kept
	BlockedBy Blocker
	Leases    []LeaseInfo // BlockedByHolders: those that it cannot be granted beside
	Ahead     int         // how many waiters are served before
}

// A Blocker says in a word what a waiter waits for.
type Blocker string

// Why somebody waits.
const (
	// BlockedByHolders: the first in the queue; For tells which leases are in the way.
	BlockedByHolders Blocker = "holders"
	// BlockedByQueue: others were there before; Ahead tells how many.
	BlockedByQueue Blocker = "queue"
	// BlockedByDisconnect: no call waits at the place now. It is passed over until one
	// comes back.
	BlockedByDisconnect Blocker = "disconnected"
)

// QueueInfo returns who waits at now and for what, as the replica self can tell.
func (s Record) QueueInfo(now time.Time, self Replica) QueueInfo {
	q := QueueInfo{Name: s.Name, Revision: s.Revision, AsOf: now}
	ahead := 0
	for _, w := range s.Queue {
		if w.hasLapsed(now, self) || w.GrantedUnclaimed && s.hasGranted(w, now) {
			continue
		}
		v := WaiterInfo{
			Position: len(q.Waiters) + 1, Place: w.Place, Mode: w.Lease.Mode, Capacity: w.Capacity, Holder: w.Lease.Holder,
			JoinedAt: w.JoinedAt, Waited: max(now.Sub(w.JoinedAt), 0), Attached: w.Attached(now, self),
			Ahead: ahead, BlockedBy: BlockedByQueue,
		}
		if v.Attached {
			ahead++
		} else {
			v.KeptFor = max(w.KeptUntil.Sub(now), 0)
		}
		switch {
		case !v.Attached:
			v.BlockedBy = BlockedByDisconnect
		case v.Ahead == 0:
			v.BlockedBy, v.Leases = BlockedByHolders, s.blockers(w, now)
		}
		q.Waiters = append(q.Waiters, v)
	}
	return q
}

// hasGranted is whether the waiter has been granted the lock at now.
func (s Record) hasGranted(w *Waiter, now time.Time) bool {
	for _, l := range s.ActiveLeases(now) {
		if l.ID == w.Lease.ID {
			return true
		}
	}
	return false
}

// blockers returns the leases that w cannot be granted beside.
func (s Record) blockers(w *Waiter, now time.Time) []LeaseInfo {
	s.Leases = s.ActiveLeases(now)
	if s.isCompatible(w.Lease.Mode, w.Capacity) {
		return nil
	}
	var held []LeaseInfo
	for _, l := range s.Leases {
		held = append(held, l.info(now))
	}
	return held
}
