package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// Batches returns a workload in which clients acquire and release many locks of their own per call.
func Batches(clients, items int) Workload {
	return Workload{
		Name: fmt.Sprint("batch-", items), Clients: clients, Unit: "pairs",
		Title: fmt.Sprintf("Acquire and release, %d locks a call, %s", items, clientCount(clients)),
		job: func(w *worker) job {
			b := &batcher{worker: w}
			for i := range items * namesPerClient / 10 {
				b.locks = append(b.locks, w.registry.lock(fmt.Sprintf("batch:%03d:%05d", w.number, i)))
			}
			return job{step: func(ctx context.Context) error { return b.acquireRelease(ctx, items) }}
		},
	}
}

// A batcher is a client with many locks of its own.
type batcher struct {
	*worker
	locks []*trackedLock
	next  int
}

// acquireRelease acquires the next locks with one call and releases them with another.
func (b *batcher) acquireRelease(ctx context.Context, items int) error {
	client, ok := b.client.(system.Batcher)
	if !ok {
		return system.ErrUnsupported
	}
	locks := b.locks[b.next : b.next+items]
	b.next = (b.next + items) % len(b.locks)
	names := make([]string, len(locks))
	for i, s := range locks {
		names[i] = s.name
	}
	began := time.Now()
	leases, err := client.AcquireAll(ctx, names)
	if err != nil {
		return err
	}
	b.record(acquire, time.Since(began))
	if err := b.check(locks, leases); err != nil {
		return err
	}
	began = time.Now()
	if err := client.ReleaseAll(ctx, leases); err != nil {
		return err
	}
	b.record(release, time.Since(began))
	b.countOps(items)
	return nil
}

func (b *batcher) check(locks []*trackedLock, leases []system.Lease) error {
	for i, s := range locks {
		if err := b.granted(s, leases[i]); err != nil {
			return err
		}
		if err := s.releasing(b.number); err != nil {
			return err
		}
	}
	return nil
}
