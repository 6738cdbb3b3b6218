package workload

import (
	"sync/atomic"
	"time"
)

// The phases of a run.
const (
	warming int32 = iota
	measuring
	finished
)

// The kinds of calls whose durations are recorded.
const (
	acquire     = "acquire"
	release     = "release"
	renew       = "renew"
	handOffTime = "hand-off" // from sending a release to the answer to the next holder
	waiting     = "wait"     // duration of an acquire that waits
)

// A meter counts the operations of one client during the measurement.
type meter struct {
	phase      *atomic.Int32
	operations atomic.Int64
	samples    map[string][]time.Duration
}

func newMeter(phase *atomic.Int32) *meter {
	return &meter{phase: phase, samples: map[string][]time.Duration{}}
}

// countOps counts completed operations.
func (m *meter) countOps(n int) {
	if m.phase.Load() == measuring {
		m.operations.Add(int64(n))
	}
}

// record records the duration of a call.
func (m *meter) record(what string, d time.Duration) {
	if m.phase.Load() == measuring {
		m.samples[what] = append(m.samples[what], d)
	}
}
