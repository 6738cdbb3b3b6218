package workload

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
)

// every is how often a lease is renewed whose TTL is 30 s.
const every = 10 * time.Second

// Renewals has clients hold leases, so many together, and renew each of them every ten seconds,
// at moments that are spread evenly; or has them do so by themselves, if they are such.
func Renewals(leases, clients int) Workload {
	return Workload{
		Name: fmt.Sprintf("renew-%d", leases), Clients: clients, Unit: "renewals", Paced: true,
		Title: fmt.Sprintf("%s leases, each renewed every %.0f s", result.Grouped(leases), every.Seconds()),
		job: func(w *worker) job {
			h := &holding{worker: w, count: leases / clients}
			return job{begin: h.acquireAll, turn: h.atPace(every, clients), end: h.releaseAll}
		},
	}
}

// Renew has clients hold some leases each, and renew them as fast as they can.
func Renew(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("renew-max-", clients), Clients: clients, Unit: "renewals",
		Title: "Renewals as fast as possible, " + counted(clients),
		job: func(w *worker) job {
			h := &holding{worker: w, count: each}
			return job{begin: h.acquireAll, turn: h.renewNext, end: h.releaseAll}
		},
	}
}

// A holding is leases that a client has of its own.
type holding struct {
	*worker
	count  int
	leases []system.Lease
	next   int
}

func (h *holding) acquireAll(ctx context.Context) error {
	for i := range h.count {
		lease, err := h.client.Acquire(ctx, fmt.Sprintf("renew:%03d:%05d", h.number, i), false)
		if err != nil {
			return err
		}
		h.leases = append(h.leases, lease)
	}
	return nil
}

// atPace returns a turn that renews the next lease when it is due: each lease once in that time. The
// clients are out of step with one another. Leases of a system.Keeper are renewed by it.
func (h *holding) atPace(each time.Duration, clients int) func(context.Context) error {
	var due time.Time
	gap := each / time.Duration(h.count)
	return func(ctx context.Context) error {
		if keeper, ok := h.client.(system.Keeper); ok {
			return h.seeRenewed(ctx, keeper)
		}
		if due.IsZero() {
			due = time.Now().Add(gap * time.Duration(h.number) / time.Duration(clients))
		}
		due = due.Add(gap)
		if err := pause(ctx, time.Until(due)); err != nil {
			return err
		}
		return h.renewNext(ctx)
	}
}

func (h *holding) renewNext(ctx context.Context) error {
	h.next = (h.next + 1) % h.count
	began := time.Now()
	if err := h.leases[h.next].Renew(ctx); err != nil {
		return err
	}
	h.took(renew, time.Since(began))
	h.did(1)
	return nil
}

// seeRenewed waits until one of the leases was renewed.
func (h *holding) seeRenewed(ctx context.Context, keeper system.Keeper) error {
	select {
	case took := <-keeper.Renewed():
		h.took(renew, took)
		h.did(1)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *holding) releaseAll(ctx context.Context) error {
	var err error
	for _, lease := range h.leases {
		err = cmp.Or(err, lease.Release(ctx))
	}
	return err
}
