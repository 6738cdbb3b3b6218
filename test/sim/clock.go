package sim

import "time"

// A Clock is a server's clock. The zero Clock is right.
type Clock struct {
	Offset time.Duration
	Drift  float64 // seconds a second: 0.0001 is one that gains 100 µs each second
	Steps  []Step  // in time order
}

// A Step moves a clock forward or back.
type Step struct {
	At, By time.Duration
}

// shows returns what the clock shows after the run has lasted for at.
func (c Clock) shows(at time.Duration) time.Duration {
	shown := at + c.Offset + time.Duration(c.Drift*float64(at))
	for _, s := range c.Steps {
		if at >= s.At {
			shown += s.By
		}
	}
	return shown
}

// when returns when a clock without steps shows the time.
func (c Clock) when(shown time.Duration) time.Duration {
	return time.Duration(float64(shown-c.Offset) / (1 + c.Drift))
}
