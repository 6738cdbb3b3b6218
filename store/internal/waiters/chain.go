package waiters

import (
	"context"
	"slices"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// maxChainPairs bounds the pairs of locks of one lock.WaitChain, and maxChainLocks the locks that it reads.
const (
	maxChainPairs = 1000
	maxChainLocks = 64
)

// Chain returns the lock.WaitChain of a lock that was read with its queue. It reads the other locks one after the
// other, only if a task or a set leads to some.
func (r *Registry) Chain(ctx context.Context, first row.Reading) (*lock.WaitChain, error) {
	locks, complete := []lock.Record{first.Record}, true
	if leadsOn(first.Record) {
		pairs, err := r.readPairs(ctx, []string{first.Record.Name}, maxChainPairs)
		if err != nil {
			return nil, err
		}
		names := reachable(first.Record.Name, pairs)
		complete = len(pairs) < maxChainPairs && len(names) <= maxChainLocks
		others, _, err := r.readLocks(ctx, names[:min(len(names), maxChainLocks)])
		if err != nil {
			return nil, err
		}
		locks = append(locks, others...)
	}
	return lock.WaitChainOf(locks, first.Now, r.self, complete), nil
}

// leadsOn reports whether other locks may matter for the waiters of the lock.
func leadsOn(r lock.Record) bool {
	return len(r.Queue) > 0 && (slices.ContainsFunc(r.Leases, func(l lock.Lease) bool { return l.Task != "" }) ||
		slices.ContainsFunc(r.Queue, func(w *lock.Waiter) bool { return w.Lease.Set != nil }))
}

// reachable returns the other locks to which the pairs lead, the nearest first.
func reachable(name string, pairs []pair) (names []string) {
	next, seen := make(map[string][]string), map[string]bool{name: true}
	for _, p := range pairs {
		next[p.from] = append(next[p.from], p.to)
	}
	for from := []string{name}; len(from) > 0; from = from[1:] {
		for _, to := range next[from[0]] {
			if !seen[to] {
				seen[to] = true
				names, from = append(names, to), append(from, to)
			}
		}
	}
	return names
}
