package workload

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// A Workload describes what each client does.
type Workload struct {
	Name    string
	Title   string
	Unit    string // what an operation is, plural
	Clients int
	// Paced means that clients run at a fixed pace instead of as fast as possible.
	Paced bool
	// Contended means that clients compete for locks, so that fairness is measured.
	Contended bool

	crowd  bool          // measure the servers' memory
	settle time.Duration // between the end of the clients and the last look at the memory

	matchesLoader bool // corresponds to the load of a system.Loader
	job           func(*worker) job
}

// A job is the work of one client: setUp, many steps, and tearDown. Nil functions are skipped.
type job struct {
	setUp    func(context.Context) error // before the warm-up
	step     func(context.Context) error
	tearDown func(context.Context) error
}

// A worker is a client of the system with its counts.
type worker struct {
	*meter
	client     system.Client
	system     system.System
	number     int
	inversions int // grants with a token that is not greater, if the system is Unordered
	registry   *lockRegistry
}

// granted records a grant to the client and returns an error if it breaks a rule.
func (w *worker) granted(s *trackedLock, l system.Lease) error {
	err := s.granted(w.number, l.Token())
	if _, unordered := w.system.(system.Unordered); unordered && errors.Is(err, errTokenOrder) {
		w.inversions++
		return nil
	}
	return err
}
