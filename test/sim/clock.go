package sim

import "time"

// A Clock is that of a server. The zero Clock is right.
type Clock struct {
	Offset time.Duration
	Drift  float64 // seconds a second: 0.0001 is one that gains 100 µs each second
	Steps  []Step  // in their order
}

// A Step puts a clock forward, or back.
type Step struct {
	At, By time.Duration
}

// shows returns what the clock shows when the run has lasted that long, as what a
// right clock would show then.
func (c Clock) shows(at time.Duration) time.Duration {
	shown := at + c.Offset + time.Duration(c.Drift*float64(at))
	for _, s := range c.Steps {
		if at >= s.At {
			shown += s.By
		}
	}
	return shown
}

// when returns when a clock that never steps shows that.
func (c Clock) when(shown time.Duration) time.Duration {
	return time.Duration(float64(shown-c.Offset) / (1 + c.Drift))
}
