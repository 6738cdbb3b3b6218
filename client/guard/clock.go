package guard

import "time"

// A clock measures time including suspensions of the machine. Go's monotonic clock stops during a
// suspension, but leases do not.
type clock struct {
	// suspended returns how long the machine has been suspended since a fixed time in the past.
	suspended func() time.Duration
}

func newClock() clock { return clock{suspended: suspendedFunc()} }

// now returns the time on this clock. It can be compared only with other times of this clock.
func (c clock) now() time.Time { return time.Now().Add(c.suspended()) }

// maxTimerInterval bounds the timer of a Lease, because the runtime's timers do not include
// suspensions either.
const maxTimerInterval = time.Second
