package workload

import (
	"sync/atomic"
	"time"
)

// The phases of a run.
const (
	warming int32 = iota
	measuring
	over
)

// What takes time.
const (
	acquire = "acquire"
	release = "release"
	renew   = "renew"
	handOff = "hand-off" // from the beginning of a release to the answer to the next holder
	waiting = "wait"     // of an acquire that waits
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

// did counts operations that are done.
func (m *meter) did(n int) {
	if m.phase.Load() == measuring {
		m.operations.Add(int64(n))
	}
}

// took notes that something took so long.
func (m *meter) took(what string, d time.Duration) {
	if m.phase.Load() == measuring {
		m.samples[what] = append(m.samples[what], d)
	}
}
