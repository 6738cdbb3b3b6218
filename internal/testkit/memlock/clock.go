package memlock

import "time"

// pollInterval is how often what is due is looked for on a clock that is not that of
// package time.
const pollInterval = time.Second

// NewOn returns an empty Memory on which it is what now says, as for a database
// whose clock drifts or jumps. It must be safe for concurrent use. What a jump makes
// due is noticed within a second, for no timer knows of such a clock.
func NewOn(now func() time.Time) *Memory { return newMemory(clock{now, pollInterval}) }

// A clock is that of the database.
type clock struct {
	now          func() time.Time
	pollInterval time.Duration // how often to look at it; zero if a timer knows
}

// until returns when to look whether that instant has come: it is positive.
func (c clock) until(at time.Time) time.Duration {
	d := at.Sub(c.now())
	if c.pollInterval > 0 {
		d = min(d, c.pollInterval)
	}
	return max(d, 1)
}
