package memlock

import "time"

// pollInterval is how often a clock that is not that of package time is read to find what is due.
const pollInterval = time.Second

// NewOn returns an empty Memory whose clock is now, for a database clock that drifts or jumps. now must be safe for
// concurrent use. What a jump makes due is noticed within a second.
func NewOn(now func() time.Time) *Memory { return newMemory(clock{now, pollInterval}) }

// A clock is the database's clock.
type clock struct {
	now          func() time.Time
	pollInterval time.Duration // how often to read it; zero if a timer can follow it
}

// until returns how long to sleep before checking whether at has come. It is positive.
func (c clock) until(at time.Time) time.Duration {
	d := at.Sub(c.now())
	if c.pollInterval > 0 {
		d = min(d, c.pollInterval)
	}
	return max(d, 1)
}
