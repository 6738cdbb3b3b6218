package main

import (
	"fmt"
	"slices"
	"sync"

	"github.com/paddock-lock/paddock/lock"
)

// A room is what a lock guards: it knows who is inside, and who has been.
type room struct {
	mu     sync.Mutex
	inside map[string]lock.Mode
	most   int      // that were inside at once
	visits []string // in order
	broken []string // who came in although others inside were in the way
}

func newRoom() *room { return &room{inside: map[string]lock.Mode{}} }

// visit has the holder be inside while it does something.
func (r *room) visit(holder string, mode lock.Mode, do func()) {
	r.enter(holder, mode)
	defer r.leave(holder)
	do()
}

func (r *room) enter(holder string, mode lock.Mode) {
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

func (r *room) leave(holder string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.inside, holder)
}

// seen returns who has been inside, in order.
func (r *room) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.visits)
}

// sound ends the test if anybody met whom it must not, or too many were inside.
func (r *room) sound(s *scene, most int) {
	s.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.broken) > 0 || r.most > most {
		s.Fatalf("at most %d were inside at once, want %d: %q", r.most, most, r.broken)
	}
}

// visited ends the test unless just these have been inside, in this order.
func (r *room) visited(s *scene, holders []string) {
	s.Helper()
	if visits := r.seen(); !slices.Equal(visits, holders) {
		s.Fatalf("the order was\n%q, want\n%q", visits, holders)
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
