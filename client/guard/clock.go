package guard

import "time"

// A clock tells instants that can be compared over a suspension of the machine.
// Go's monotonic clock stops in one, while the lease goes on.
type clock struct {
	// suspended returns for how long the machine was suspended since some instant
	// in the past, always the same.
	suspended func() time.Duration
}

func newClock() clock { return clock{suspended: suspendedFunc()} }

// now returns the instant on this clock. It is of no use for anything but to be compared
// with others of the same clock.
func (c clock) now() time.Time { return time.Now().Add(c.suspended()) }

// maxTimerInterval is how often at least a watch looks at the clock, since a timer of the runtime does
// not count a suspension either.
const maxTimerInterval = time.Second
