package workload

import (
	"context"
	"errors"

	"github.com/paddock-lock/paddock/bench/system"
)

// A Workload is what each of so many clients does.
type Workload struct {
	Name    string
	Title   string
	Unit    string // what an operation is, in the plural
	Clients int
	// Paced is whether clients go at a fixed pace, and not as fast as they are answered.
	Paced bool
	// Contended is whether clients want the same locks, so that it matters who is served.
	Contended bool

	matchesLoader bool // whether a system that makes its own load does about that
	job           func(*worker) job
}

// A job is what one client does: begin, many turns, and end. Those that are nil do nothing.
type job struct {
	setUp    func(context.Context) error // before the warm-up
	step     func(context.Context) error
	tearDown func(context.Context) error
}

// A worker is a client of the system with what it has done.
type worker struct {
	*meter
	client     system.Client
	system     system.System
	number     int
	inversions int // how often a token was not greater, where that may be
	registry   *lockRegistry
}

// granted notes that a lock was granted to the client, and checks that it may have been.
func (w *worker) granted(s *trackedLock, l system.Lease) error {
	err := s.granted(w.number, l.Token())
	if _, unordered := w.system.(system.Unordered); unordered && errors.Is(err, errTokenOrder) {
		w.inversions++
		return nil
	}
	return err
}
