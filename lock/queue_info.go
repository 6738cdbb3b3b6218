package lock

import "time"

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
	Leases    []LeaseInfo // the conflicting leases, for BlockedByHolders
	Ahead     int         // how many attached waiters are ahead that it may not pass
}

// Passes reports whether w may be granted the lock before the earlier waiter, as those for different locks below it may.
func (w WaiterInfo) Passes(earlier WaiterInfo) bool {
	return w.modeInQueue().passes(earlier.modeInQueue())
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
	// BlockedByHolders: no attached waiter is ahead. Leases are the conflicting leases, perhaps none while
	// grants are paused, or if the waiter waits for other locks of its Set.
	BlockedByHolders Blocker = "holders"
	// BlockedByQueue: attached waiters are ahead; Ahead is their number.
	BlockedByQueue Blocker = "queue"
	// BlockedByDisconnect: no call waits at the place. It is skipped until the client calls again.
	BlockedByDisconnect Blocker = "disconnected"
)

// QueueInfo returns the waiters at now and what blocks each, as the replica self knows it.
func (r Record) QueueInfo(now time.Time, self Replica) QueueInfo {
	q := QueueInfo{Name: r.Name, Revision: r.Revision, AsOf: now}
	var ahead [MaxMode + 1]int // how many attached waiters there are of each mode
	for _, w := range r.Queue {
		if w.hasLapsed(now, self) || w.GrantedUnclaimed && r.hasLeaseOf(w, now) {
			continue
		}
		v := WaiterInfo{
			Position: len(q.Waiters) + 1, Place: w.Place, Mode: w.Lease.Mode, Capacity: w.Capacity,
			Holder: w.Lease.Holder, JoinedAt: w.JoinedAt, Waited: max(now.Sub(w.JoinedAt), 0), Attached: w.Attached(now, self),
			Set: w.Lease.together(), BlockedBy: BlockedByQueue,
		}
		if v.Mode.IsIntention() {
			below := w.Lease.infoBelow(r.Name, now)
			v.Name, v.Mode = below.Name, below.Mode
		}
		for m, n := range ahead {
			if !w.Lease.Mode.passes(Mode(m)) {
				v.Ahead += n
			}
		}
		if v.Attached {
			ahead[w.Lease.Mode]++
		} else {
			v.KeptFor = max(w.KeptUntil.Sub(now), 0)
		}
		switch {
		case !v.Attached:
			v.BlockedBy = BlockedByDisconnect
		case v.Ahead == 0:
			v.BlockedBy, v.Leases = BlockedByHolders, r.blockers(w, now)
		}
		q.Waiters = append(q.Waiters, v)
	}
	return q
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
	var held []LeaseInfo
	for _, l := range r.conflicting(w.Lease.Mode) {
		if l.Mode.IsIntention() {
			held = append(held, l.infoBelow(r.Name, now))
		} else {
			held = append(held, l.info(now))
		}
	}
	return held
}
