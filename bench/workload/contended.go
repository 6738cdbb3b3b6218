package workload

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// Contended returns a workload in which all clients wait for, acquire and release the same lock.
func Contended(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("contended-", clients), Clients: clients, Unit: "hand-offs", Contended: true,
		Title: "One lock, passed on between " + clientCount(clients),
		job: func(w *worker) job {
			s := w.registry.lock("contended")
			return job{step: func(ctx context.Context) error { return w.handOff(ctx, s) }}
		},
	}
}

// Queues returns a workload in which waiters wait for locks; one more client per lock holds it.
func Queues(waiters, locks int) Workload {
	return Workload{
		Name: fmt.Sprintf("queue-%d", waiters), Clients: waiters + locks, Unit: "hand-offs", Contended: true,
		Title: fmt.Sprintf("%s that wait for %d locks", clientCount(waiters), locks),
		job: func(w *worker) job {
			s := w.registry.lock(fmt.Sprintf("queue:%03d", w.number%locks))
			return job{step: func(ctx context.Context) error { return w.handOff(ctx, s) }}
		},
	}
}

// handOff waits for a lock and releases it immediately.
func (w *worker) handOff(ctx context.Context, s *trackedLock) error {
	began := time.Now()
	lease, err := w.client.Acquire(ctx, s.name, true)
	if err != nil {
		return err
	}
	if since, ok := s.sinceRelease(); ok {
		w.record(handOffTime, since)
	}
	w.record(waiting, time.Since(began))
	if err := w.granted(s, lease); err != nil {
		return err
	}
	w.countOps(1)
	runtime.Gosched() // gives a second holder, which would be a fault, the chance to be detected
	if err := s.releasing(w.number); err != nil {
		return err
	}
	began = time.Now()
	if err := lease.Release(ctx); err != nil {
		return err
	}
	w.record(release, time.Since(began))
	return nil
}
