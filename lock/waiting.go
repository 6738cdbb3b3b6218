package lock

import "time"

// A Queue is who waits for a lock, as of an instant. It holds no secret.
type Queue struct {
	Name     string
	Revision int64
	AsOf     time.Time
	Waiters  []Waiting // in the order in which they are served
}

// A Waiting is what anybody may know of a waiter.
type Waiting struct {
	Position int   // 1 for the first
	Place    int64 // the lock's revision when it joined; the event that says so has it, too
	Mode     Mode
	Capacity int // of a permit
	Holder   string
	JoinedAt time.Time
	Waited   time.Duration // as of the queue's AsOf
	Attached bool          // whether a call waits there now
	KeptFor  time.Duration // if none does: for how long the place is kept
	Reason   WaitReason
	For      []Holding // WaitsForLeases: those that it cannot be granted beside
	Behind   int       // how many waiters are served before
}

// A WaitReason says in a word what a waiter waits for.
type WaitReason string

// Why somebody waits.
const (
	// WaitsForLeases: the first in the queue; For tells which leases are in the way.
	WaitsForLeases WaitReason = "leases"
	// WaitsForTurn: others were there before; Behind tells how many.
	WaitsForTurn WaitReason = "turn"
	// WaitsForCall: no call waits at the place now. It is passed over until one
	// comes back.
	WaitsForCall WaitReason = "call"
)

// Waiting returns who waits at now and for what, as the replica self can tell.
func (s State) Waiting(now time.Time, self Replica) Queue {
	q := Queue{Name: s.Name, Revision: s.Revision, AsOf: now}
	ahead := 0
	for _, w := range s.Queue {
		if w.gone(now, self) || w.Offered && s.offers(w, now) {
			continue
		}
		v := Waiting{
			Position: len(q.Waiters) + 1, Place: w.Place, Mode: w.Want.Mode, Capacity: w.Capacity, Holder: w.Want.Holder,
			JoinedAt: w.JoinedAt, Waited: max(now.Sub(w.JoinedAt), 0), Attached: w.Attached(now, self),
			Behind: ahead, Reason: WaitsForTurn,
		}
		if v.Attached {
			ahead++
		} else {
			v.KeptFor = max(w.KeptUntil.Sub(now), 0)
		}
		switch {
		case !v.Attached:
			v.Reason = WaitsForCall
		case v.Behind == 0:
			v.Reason, v.For = WaitsForLeases, s.inTheWayOf(w, now)
		}
		q.Waiters = append(q.Waiters, v)
	}
	return q
}

// offers is whether the waiter has been granted the lock at now.
func (s State) offers(w *Waiter, now time.Time) bool {
	for _, l := range s.Live(now) {
		if l.ID == w.Want.ID {
			return true
		}
	}
	return false
}

// inTheWayOf returns the leases that w cannot be granted beside.
func (s State) inTheWayOf(w *Waiter, now time.Time) []Holding {
	s.Leases = s.Live(now)
	if s.fits(w.Want.Mode, w.Capacity) {
		return nil
	}
	var held []Holding
	for _, l := range s.Leases {
		held = append(held, l.holding(now))
	}
	return held
}
