package sim

import "time"

// A machine runs one worker's process, which may be paused: by a garbage collector, a
// hypervisor, a full disk, a laptop's lid. All of the process's time is right.
type machine struct {
	*Trace
	pauses []Span
}

// The threads of a process. Of those that a pause held up each goes on a nanosecond
// after the one before, so that their order is always the same.
const (
	working time.Duration = iota + 1 // acquires, works, releases
	renewing
)

// awake returns once the process runs. It is called wherever the process is about to
// act, and wherever it might notice something: an answer, a timer, the clock.
func (m *machine) awake(thread time.Duration) {
	for _, p := range m.pauses {
		if now := m.now(); now >= p.From && now < p.To {
			time.Sleep(p.To + thread - now)
		}
	}
}

// sleep has the thread do nothing for that long, and longer if the process is paused then.
func (m *machine) sleep(thread, d time.Duration) {
	time.Sleep(d)
	m.awake(thread)
}
