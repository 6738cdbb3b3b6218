package lock

import (
	"slices"
	"time"
)

// A QueueInfo is the public view of a lock's queue at one instant. It contains no secret.
type QueueInfo struct {
	Name     string
	Revision int64
	AsOf     time.Time
	Waiters  []WaiterInfo // in the order of the queue
	Chain    *WaitChain   // of the first waiter; nil if nothing is seen in its way. Services add it
}

// A WaiterInfo is the public view of a waiter.
type WaiterInfo struct {
	Position  int    // 1 for the first
	Place     int64  // the lock's revision when it joined, as in its Queued event
	Name      string // of the lock that is waited for, if that is below this one in a tree
	Mode      Mode   // of that lock
	Capacity  int    // number of permits, for mode Permit
	Holder    string
	JoinedAt  time.Time
	Waited    time.Duration // as of the queue's AsOf
	Attached  bool          // whether a call waits there now
	KeptFor   time.Duration // how long the place is still kept, if no call waits there
	Set       []string      // the locks that are waited for together, this one included; nil if it is alone
	BlockedBy Blocker
	// BlockedAt is the lock at which it is blocked, if nothing blocks it at this one: another one of its Set, or one above
	// or below in a tree. Then BlockedBy, Leases and Ahead are of that lock. Empty for this one.
	BlockedAt string
	Leases    []LeaseInfo // the conflicting leases, for BlockedByHolders
	Ahead     int         // how many attached waiters are ahead that it may not overtake
}

// MayOvertake reports whether w may be granted the lock before the earlier waiter, as those for different locks below it
// may.
func (w WaiterInfo) MayOvertake(earlier WaiterInfo) bool {
	return w.modeInQueue().mayOvertake(earlier.modeInQueue())
}

// modeInQueue returns the mode in this queue: that of an intention if the waiter waits for a lock below.
func (w WaiterInfo) modeInQueue() Mode {
	if w.Name == "" {
		return w.Mode
	}
	return intentionFor(w.Mode)
}

// A Blocker names what a waiter waits for.
type Blocker string

// The reasons for waiting.
const (
	// BlockedByHolders: no attached waiter is ahead. Leases are the conflicting leases, or all if the lock has MaxHolders
	// of them; none while grants are paused, or if what blocks the waiter is not seen.
	BlockedByHolders Blocker = "holders"
	// BlockedByQueue: attached waiters are ahead; Ahead is their number.
	BlockedByQueue Blocker = "queue"
	// BlockedByDisconnect: no call waits at the place. It is skipped until the client calls again.
	BlockedByDisconnect Blocker = "disconnected"
)

// QueueInfo returns the waiters at now and what blocks each, as the replica self knows it. others are locks of which
// some of them wait, too, see [Record.WaitedForToo].
func (r Record) QueueInfo(now time.Time, self Replica, others ...Record) QueueInfo {
	q := QueueInfo{Name: r.Name, Revision: r.Revision, AsOf: now}
	r.eachWaiter(now, self, func(w *Waiter, ahead int) {
		v := WaiterInfo{
			Position: len(q.Waiters) + 1, Place: w.Place, Mode: w.Lease.Mode, Capacity: w.Capacity,
			Holder: w.Lease.Holder, JoinedAt: w.JoinedAt, Waited: max(now.Sub(w.JoinedAt), 0), Attached: w.Attached(now, self),
			Set: w.Lease.together(), BlockedBy: BlockedByQueue, Ahead: ahead,
		}
		if v.Mode.IsIntention() {
			below := w.Lease.infoBelow(r.Name, now)
			v.Name, v.Mode = below.Name, below.Mode
		}
		switch {
		case !v.Attached:
			v.BlockedBy, v.KeptFor = BlockedByDisconnect, max(w.KeptUntil.Sub(now), 0)
		case ahead == 0:
			v.BlockedBy, v.Leases = BlockedByHolders, r.blockers(w, now)
		}
		if v.BlockedBy == BlockedByHolders && len(v.Leases) == 0 {
			v.blockElsewhere(w, others, now, self)
		}
		q.Waiters = append(q.Waiters, v)
	})
	return q
}

// WaitedForToo returns the other locks for which waiters wait that nothing blocks at this one, in the order of the
// queue, at most limit.
func (r Record) WaitedForToo(now time.Time, self Replica, limit int) (names []string) {
	r.eachWaiter(now, self, func(w *Waiter, ahead int) {
		if len(w.Lease.Set) == 0 || ahead > 0 || len(names) >= limit || !w.Attached(now, self) || len(r.blockers(w, now)) > 0 {
			return
		}
		for _, name := range w.Lease.Set {
			if name != r.Name && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	})
	return names[:min(len(names), limit)]
}

// eachWaiter calls do for each waiter that is in the queue at now, with how many attached ones are ahead that it may
// not overtake.
func (r Record) eachWaiter(now time.Time, self Replica, do func(w *Waiter, ahead int)) {
	var attached [MaxMode + 1]int // how many there are of each mode
	for _, w := range r.Queue {
		if w.hasLapsed(now, self) || w.GrantedUnclaimed && r.hasLeaseOf(w, now) {
			continue
		}
		ahead := 0
		for m, n := range attached {
			if !w.Lease.Mode.mayOvertake(Mode(m)) {
				ahead += n
			}
		}
		do(w, ahead)
		if w.Attached(now, self) {
			attached[w.Lease.Mode]++
		}
	}
}

// blockElsewhere notes what blocks the waiter at the first of the other locks at which anything does: leases rather
// than waiters.
func (v *WaiterInfo) blockElsewhere(w *Waiter, others []Record, now time.Time, self Replica) {
	for _, o := range others {
		if !slices.Contains(w.Lease.Set, o.Name) {
			continue
		}
		o.eachWaiter(now, self, func(there *Waiter, ahead int) {
			if there.Lease.ID != w.Lease.ID || len(v.Leases) > 0 {
				return
			}
			leases := o.blockers(there, now)
			switch {
			case len(leases) > 0:
				v.BlockedBy, v.BlockedAt, v.Ahead, v.Leases = BlockedByHolders, o.Name, 0, leases
				for i := range leases {
					if leases[i].Name == "" {
						leases[i].Name = o.Name
					}
				}
			case ahead > 0 && v.Ahead == 0:
				v.BlockedBy, v.BlockedAt, v.Ahead = BlockedByQueue, o.Name, ahead
			}
		})
	}
}

// hasLeaseOf reports whether r has the lease of the waiter at now.
func (r Record) hasLeaseOf(w *Waiter, now time.Time) bool {
	for _, l := range r.ActiveLeases(now) {
		if l.ID == w.Lease.ID {
			return true
		}
	}
	return false
}

// blockers returns the leases that conflict with w.
func (r Record) blockers(w *Waiter, now time.Time) []LeaseInfo {
	r.Leases = r.ActiveLeases(now)
	if r.isCompatible(w.Lease.Mode, w.Capacity) {
		return nil
	}
	blocking := r.conflicting(w.Lease.Mode)
	if r.isFull(w.Lease.Mode) {
		blocking = r.Leases
	}
	var held []LeaseInfo
	for _, l := range blocking {
		if l.Mode.IsIntention() {
			held = append(held, l.infoBelow(r.Name, now))
		} else {
			held = append(held, l.info(now))
		}
	}
	return held
}
