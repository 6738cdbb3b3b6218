package lock

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// A State is the public state of a lock.
type State string

// The states of a lock.
const (
	Free State = "free"
	Held State = "held"
	// InGrace: every lease has expired or was revoked, and the grace of one is not over. Its holder may renew it,
	// unless it was revoked.
	InGrace State = "grace"
	// Suspect: a lease that stays was not renewed in time. Look at the half-done work, and revoke the lease. Others may
	// be active beside it.
	Suspect State = "suspect"
)

// A Lock is the public view of a lock at one instant. It contains no secret.
type Lock struct {
	Name      string
	State     State
	Revision  int64
	Token     Token // the newest granted; zero for none
	ChangedAt time.Time
	AsOf      time.Time // on the database's clock
	Capacity  int       // of the permits; zero if none is held
	Waiters   int       // number of calls in the queue that wait for the lock
	// WaitersBelow is the number of calls in the queue that wait for locks below it in a tree. Each is one of the Waiters
	// of every lock that it waits for, and of no lock above these: so it is one waiter, at however many levels it waits.
	WaitersBelow int
	Leases       []LeaseInfo
	// Closed: the work of the lock is done, and it is granted to no client before Closed.Until. Nil: it is open.
	Closed *Closure
	// Frozen is the freeze that keeps new grants of the lock from being made for the longest time, nil if there is none.
	// Services add it.
	Frozen *Freeze
	// In a tree: the leases of the locks above it, which cover it, and of those below it.
	Above, Below []LeaseInfo
}

// AddPolicy adds what operators have declared about the lock.
func (l *Lock) AddPolicy(p *Policy) {
	l.Frozen = p.FreezeOf(l.Name, l.AsOf)
	if r := p.RuleOf(l.Name); r != nil && r.Capacity > 0 && l.Capacity > 0 {
		l.Capacity = r.Capacity
	}
}

// AddAbove adds the leases of a lock above l in its tree.
func (l *Lock) AddAbove(above Lock) {
	for _, info := range above.Leases {
		info.Name = above.Name
		l.Above = append(l.Above, info)
	}
}

// A LeaseInfo is the public view of a lease.
type LeaseInfo struct {
	Name       string // of its lock, if that is above or below the one whose info this is part of
	Slot       int
	Slots      Slots // of several permits; otherwise empty
	Mode       Mode
	Holder     string
	Token      Token
	AcquiredAt time.Time
	ExpiresAt  time.Time
	Remaining  time.Duration // from the lock's AsOf until ExpiresAt, never negative
	Grace      time.Duration
	Metadata   json.RawMessage
	Session    SessionRef // keeps the lease alive; zero for none
	Set        []string   // the locks that were acquired together, this one included; nil if it was acquired alone
	Stays      bool       // the lease does not end by itself
	Suspect    bool       // it stays, and was not renewed in time
	Revoked    bool       // only the grace is left; it began at ExpiresAt, which the revocation may have set
}

// Permits returns how many permits the lease has.
func (l LeaseInfo) Permits() int { return l.Slots.Count() }

// PermitsOut returns how many permits of the lock are held.
func (l Lock) PermitsOut() (n int) {
	for _, info := range l.Leases {
		n += info.Permits()
	}
	return n
}

// Lock returns the public view of r at now.
func (r Record) Lock(now time.Time) Lock {
	l := Lock{
		Name: r.Name, State: Free, Revision: r.Revision, Token: r.Token, ChangedAt: r.ChangedAt, AsOf: now,
	}
	for _, w := range r.Queue {
		l.addWaiters(w.Lease.Mode, 1)
	}
	if r.isDone(now) {
		l.Closed = r.Closed
	}
	for _, lease := range r.ActiveLeases(now) {
		if lease.Unclaimed() {
			l.addWaiters(lease.Mode, -1) // its waiter stays in the queue until the grant is claimed
		}
		if lease.Mode.IsIntention() {
			l.Below = append(l.Below, lease.infoBelow(r.Name, now))
			continue
		}
		switch {
		case lease.IsSuspect(now):
			l.State = Suspect
		case l.State == Suspect: // whatever the other leases are
		case now.Before(lease.ExpiresAt):
			l.State = Held
		case l.State == Free:
			l.State = InGrace
		}
		l.Capacity = r.Capacity
		l.Leases = append(l.Leases, lease.info(now))
	}
	return l
}

// addWaiters adds n waiters that are in the queue with the mode.
func (l *Lock) addWaiters(m Mode, n int) {
	if m.IsIntention() {
		l.WaitersBelow += n
	} else {
		l.Waiters += n
	}
}

// info returns the public view of l at now.
func (l Lease) info(now time.Time) LeaseInfo {
	return LeaseInfo{
		Slot: l.Slot, Slots: l.Slots, Mode: l.Mode, Holder: l.Holder, Token: l.Token,
		AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt,
		Remaining: max(l.ExpiresAt.Sub(now), 0), Grace: l.Grace, Metadata: l.Metadata, Session: l.Session,
		Set: l.together(), Stays: l.Stays, Suspect: l.IsSuspect(now), Revoked: l.Revoked(),
	}
}

// infoBelow returns the public view of what an intention at the lock stands for.
func (l Lease) infoBelow(at string, now time.Time) LeaseInfo {
	i := l.info(now)
	i.Name, i.Slot, i.Mode = l.heldName(at), 0, Exclusive
	if l.Mode == IntentionShared {
		i.Mode = Shared
	}
	return i
}

// Version identifies the state of l: it changes with every change except the remaining times. Pass it as the Seen of a
// Watch. It is never empty.
func (l Lock) Version() string {
	v := fmt.Sprintf("%d.%d.%s.%d.%d", l.Revision, l.Token, l.State, len(l.Leases), l.Waiters+l.WaitersBelow)
	for _, above := range l.Above {
		v += fmt.Sprintf(".%d", above.Token)
	}
	if l.Capacity > 0 {
		v += fmt.Sprintf(".%d", l.Capacity) // a rule may have changed it
	}
	if l.Closed != nil {
		v += ".closed"
	}
	if l.Frozen != nil {
		v += ".frozen"
	}
	return v
}

// NextChangeAt returns the earliest time at which the version changes without any request, or zero.
func (l Lock) NextChangeAt() time.Time {
	var first time.Time
	include := func(at time.Time) {
		if l.AsOf.Before(at) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	for _, h := range l.Leases {
		include(h.ExpiresAt)
		include(h.ExpiresAt.Add(h.Grace))
	}
	if l.Closed != nil {
		include(l.Closed.Until)
	}
	if l.Frozen != nil {
		include(l.Frozen.Until)
	}
	return first
}

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
	Capacity  int    // number of permits that there are, for mode Permit
	Permits   int    // how many of them it waits for, for mode Permit
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
	// of them; none if what blocks the waiter is not seen.
	BlockedByHolders Blocker = "holders"
	// BlockedByClosure: no attached waiter is ahead, and the lock is closed or frozen.
	BlockedByClosure Blocker = "closed"
	// BlockedByPause: no attached waiter is ahead and no lease is in the way, but grants are paused, because the database
	// may have lost leases that are still in use.
	BlockedByPause Blocker = "paused"
	// BlockedByQueue: attached waiters are ahead; Ahead is their number.
	BlockedByQueue Blocker = "queue"
	// BlockedByDisconnect: no call waits at the place. It is skipped until the client calls again.
	BlockedByDisconnect Blocker = "disconnected"
)

// QueueInfo returns the waiters and what blocks each, at the view's Now, as its Self knows it. Its Locks are others for
// which some of them wait, too, see [Record.WaitedForToo]; its Policy and its GrantsPausedUntil are what keeps locks from
// being granted.
//
// A waiter is blocked by the first of these that there is:
//
//	its call has gone                                      disconnected
//	attached waiters are ahead at the lock                 queue
//	leases at the lock conflict                            holders
//	a release has closed the lock, or it is frozen         closed
//	grants are paused                                      paused
//	leases conflict at another lock of its set or tree     holders, BlockedAt it
//	attached waiters are ahead at another lock             queue, BlockedAt it
//	another lock is closed or frozen                       closed, BlockedAt it
//	nothing is seen                                        holders, without Leases
func (r Record) QueueInfo(in View) QueueInfo {
	now, self := in.Now, in.Self
	q := QueueInfo{Name: r.Name, Revision: r.Revision, AsOf: now}
	r.eachWaiter(now, self, func(w *Waiter, ahead int) {
		v := WaiterInfo{
			Position: len(q.Waiters) + 1, Place: w.Place, Mode: w.Lease.Mode, Capacity: w.Capacity,
			Holder: w.Lease.Holder, JoinedAt: w.JoinedAt, Waited: max(now.Sub(w.JoinedAt), 0), Attached: w.Attached(now, self),
			Set: w.Lease.together(), BlockedBy: BlockedByQueue, Ahead: ahead,
		}
		if v.Mode == Permit {
			v.Permits = w.Member().permits()
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
		if v.BlockedBy == BlockedByHolders && r.isDone(now) {
			v.BlockedBy = BlockedByClosure
		}
		if v.BlockedBy == BlockedByHolders && len(v.Leases) == 0 {
			v.blockWithoutLeases(r, w, in)
		}
		q.Waiters = append(q.Waiters, v)
	})
	return q
}

// blockWithoutLeases notes what blocks the waiter at r, where no lease and no waiter does.
func (v *WaiterInfo) blockWithoutLeases(r Record, w *Waiter, in View) {
	switch {
	case in.Policy.freezeIn(w.Lease.Mode, r.Name, in.Now) != nil:
		v.BlockedBy = BlockedByClosure
	case in.Now.Before(in.GrantsPausedUntil):
		v.BlockedBy = BlockedByPause
	default:
		v.blockElsewhere(r.Name, w, in)
	}
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
// than waiters, and these rather than a closed lock.
func (v *WaiterInfo) blockElsewhere(here string, w *Waiter, in View) {
	for _, o := range in.Locks {
		if o.Name == here || !slices.Contains(w.Lease.Set, o.Name) {
			continue
		}
		o.eachWaiter(in.Now, in.Self, func(there *Waiter, ahead int) {
			if there.Lease.ID != w.Lease.ID || len(v.Leases) > 0 {
				return
			}
			leases := o.blockers(there, in.Now)
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
			case v.BlockedAt == "" && o.isDone(in.Now):
				v.BlockedBy, v.BlockedAt = BlockedByClosure, o.Name
			}
		})
	}
	for _, name := range w.Lease.Set { // a freeze is known without the record
		if v.BlockedAt == "" && name != here && in.Policy.freezeIn(w.Lease.modeAt(name), name, in.Now) != nil {
			v.BlockedBy, v.BlockedAt = BlockedByClosure, name
		}
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
	if r.isCompatible(w.Member()) {
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
