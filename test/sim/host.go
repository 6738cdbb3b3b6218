package sim

import (
	"context"
	"errors"
	"time"
)

// A host runs one worker's process, which may be paused (by a garbage collector, a hypervisor, a full disk, a closed
// laptop) or die. Its clock is right.
type host struct {
	*Trace
	pauses []Interval
	death  time.Duration // when the process dies for good; zero: it does not
}

// dead reports whether the process has died. Timers of a dead process still fire here, but it sends nothing.
func (m *host) dead() bool { return m.death > 0 && m.now() >= m.death }

// The threads of a process. After a pause each continues a nanosecond after the one before, so that their order is
// always the same.
const (
	working time.Duration = iota + 1 // acquires, works, releases
	renewing
)

// awake returns when the process runs. It is called before the process acts, and wherever it could notice something:
// an answer, a timer, the clock.
func (m *host) awake(thread time.Duration) {
	for _, p := range m.pauses {
		if now := m.now(); now >= p.From && now < p.To {
			time.Sleep(p.To + thread - now)
		}
	}
}

// note adds an entry to the trace, unless the process is dead.
func (m *host) note(actor, format string, args ...any) {
	if !m.dead() {
		m.Trace.note(actor, format, args...)
	}
}

// detail adds an entry about messages to the trace, unless the process is dead.
func (m *host) detail(actor, format string, args ...any) {
	if !m.dead() {
		m.Trace.detail(actor, format, args...)
	}
}

// untilDeath returns a context that ends when the process dies.
func (m *host) untilDeath() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	if m.death == 0 {
		return ctx, cancel
	}
	death := time.AfterFunc(max(m.death-m.now(), 1), cancel)
	return ctx, func() { death.Stop(); cancel() }
}

// errDied ends the work of a process that has died.
var errDied = errors.New("the process has died")

// sleep pauses the thread for d, and longer if the process is paused at the end.
func (m *host) sleep(thread, d time.Duration) {
	time.Sleep(d)
	m.awake(thread)
}
