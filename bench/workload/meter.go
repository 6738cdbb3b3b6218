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

// What takes time.
const (
	acquire     = "acquire"
	release     = "release"
	renew       = "renew"
	handOffTime = "hand-off" // from the beginning of a release to the answer to the next holder
	waiting     = "wait"     // of an acquire that waits
)

// A meter counts what one client does in the phase that is measured.
type meter struct {
	phase      *atomic.Int32
	operations atomic.Int64
	samples    map[string][]time.Duration
}

func newMeter(phase *atomic.Int32) *meter {
	return &meter{phase: phase, samples: map[string][]time.Duration{}}
}

// countOps counts operations that are done.
func (m *meter) countOps(n int) {
	if m.phase.Load() == measuring {
		m.operations.Add(int64(n))
	}
}

// record notes that something took so long.
func (m *meter) record(what string, d time.Duration) {
	if m.phase.Load() == measuring {
		m.samples[what] = append(m.samples[what], d)
	}
}
