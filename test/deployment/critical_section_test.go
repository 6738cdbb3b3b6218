package deployment_test

import (
	"fmt"
	"slices"
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// A criticalSection is what a lock protects. It records which holders are inside.
type criticalSection struct {
	mu     sync.Mutex
	inside map[string]lock.Mode
	most   int      // that were inside at once
	visits []string // in order
	broken []string // holders that entered although one inside excluded them
}

func newCriticalSection() *criticalSection { return &criticalSection{inside: map[string]lock.Mode{}} }

// run calls do while the holder is inside.
func (r *criticalSection) run(holder string, mode lock.Mode, do func()) {
	r.enter(holder, mode)
	defer r.leave(holder)
	do()
}

func (r *criticalSection) enter(holder string, mode lock.Mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other, m := range r.inside {
		if mode != m || mode == lock.Exclusive {
			r.broken = append(r.broken, fmt.Sprintf("%s was inside when %s came", other, holder))
		}
	}
	r.inside[holder] = mode
	r.most = max(r.most, len(r.inside))
	r.visits = append(r.visits, holder)
}

func (r *criticalSection) leave(holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inside, holder)
}

// holders returns the holders that have been inside, in order.
func (r *criticalSection) holders() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.visits)
}

// check fails the test if holders that exclude each other met, or too many were inside.
func (r *criticalSection) check(s *fixture, most int) {
	s.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.broken) > 0 || r.most > most {
		s.Fatalf("at most %d were inside at once, want %d: %q", r.most, most, r.broken)
	}
}

// checkOrder fails the test unless exactly these holders have been inside, in this order.
func (r *criticalSection) checkOrder(s *fixture, holders []string) {
	s.Helper()
	if visits := r.holders(); !slices.Equal(visits, holders) {
		s.Fatalf("the order is\n%q, want\n%q", visits, holders)
	}
}

// numbered returns n names, in order.
func numbered(what string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s %d", what, i+1)
	}
	return names
}
