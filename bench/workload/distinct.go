package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/result"
)

// namesPerClient is the number of locks that a client uses alone.
const namesPerClient = 100

// Distinct returns a workload in which each client acquires and releases locks that no other client uses. They are
// a group of their own: with several cells, clients use different ones.
func Distinct(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("distinct-", clients), Clients: clients, Unit: "pairs", matchesLoader: true,
		Title: fmt.Sprintf("Acquire and release, %s, each on names of its own", clientCount(clients)),
		job: func(w *worker) job {
			locks := make([]*trackedLock, namesPerClient)
			for i := range locks {
				locks[i] = w.registry.lock(fmt.Sprintf("distinct-%03d:%03d", w.number, i))
			}
			next := 0
			return job{step: func(ctx context.Context) error {
				next++
				return w.acquireRelease(ctx, locks[next%namesPerClient])
			}}
		},
	}
}

// acquireRelease acquires a free lock and releases it.
func (w *worker) acquireRelease(ctx context.Context, s *trackedLock) error {
	began := time.Now()
	lease, err := w.client.Acquire(ctx, s.name, false)
	if err != nil {
		return err
	}
	w.record(acquire, time.Since(began))
	if err := w.granted(s, lease); err != nil {
		return err
	}
	if err := s.releasing(w.number); err != nil {
		return err
	}
	began = time.Now()
	if err := lease.Release(ctx); err != nil {
		return err
	}
	w.record(release, time.Since(began))
	w.countOps(1)
	return nil
}

// clientCount formats a number of clients.
func clientCount(clients int) string {
	if clients == 1 {
		return "1 client"
	}
	return result.Grouped(clients) + " clients"
}
