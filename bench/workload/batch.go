package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// Batches has clients take and give back many locks of their own with one call each.
func Batches(clients, items int) Workload {
	return Workload{
		Name: fmt.Sprint("batch-", items), Clients: clients, Unit: "pairs",
		Title: fmt.Sprintf("Acquire and release, %d locks a call, %s", items, counted(clients)),
		job: func(w *worker) job {
			b := &batcher{worker: w}
			for i := range items * each / 10 {
				b.spots = append(b.spots, w.field.spot(fmt.Sprintf("batch:%03d:%05d", w.number, i)))
			}
			return job{turn: func(ctx context.Context) error { return b.pairs(ctx, items) }}
		},
	}
}

// A batcher is a client with many names of its own.
type batcher struct {
	*worker
	spots []*spot
	next  int
}

// pairs takes the next of its locks with one call and gives them back with another.
func (b *batcher) pairs(ctx context.Context, items int) error {
	client, ok := b.client.(system.Batcher)
	if !ok {
		return system.ErrUnsupported
	}
	spots := b.spots[b.next : b.next+items]
	b.next = (b.next + items) % len(b.spots)
	names := make([]string, len(spots))
	for i, s := range spots {
		names[i] = s.name
	}
	began := time.Now()
	leases, err := client.AcquireAll(ctx, names)
	if err != nil {
		return err
	}
	b.took(acquire, time.Since(began))
	if err := b.check(spots, leases); err != nil {
		return err
	}
	began = time.Now()
	if err := client.ReleaseAll(ctx, leases); err != nil {
		return err
	}
	b.took(release, time.Since(began))
	b.did(items)
	return nil
}

func (b *batcher) check(spots []*spot, leases []system.Lease) error {
	for i, s := range spots {
		if err := b.granted(s, leases[i]); err != nil {
			return err
		}
		if err := s.releasing(b.number); err != nil {
			return err
		}
	}
	return nil
}
