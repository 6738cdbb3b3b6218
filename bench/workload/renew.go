package workload

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
)

// renewInterval is how often a lease is renewed whose TTL is 30 s.
const renewInterval = 10 * time.Second

// Renewals has clients hold leases, so many together, and renew each of them every ten seconds,
// at moments that are spread evenly; or has them do so by themselves, if they are such.
func Renewals(leases, clients int) Workload {
	return Workload{
		Name: fmt.Sprintf("renew-%d", leases), Clients: clients, Unit: "renewals", Paced: true,
		Title: fmt.Sprintf("%s leases, each renewed every %.0f s", result.Grouped(leases), renewInterval.Seconds()),
		job: func(w *worker) job {
			h := &leaseSet{worker: w, count: leases / clients}
			return job{setUp: h.acquireAll, step: h.paced(renewInterval, clients), tearDown: h.releaseAll}
		},
	}
}

// Renew has clients hold some leases each, and renew them as fast as they can.
func Renew(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("renew-max-", clients), Clients: clients, Unit: "renewals",
		Title: "Renewals as fast as possible, " + clientCount(clients),
		job: func(w *worker) job {
			h := &leaseSet{worker: w, count: namesPerClient}
			return job{setUp: h.acquireAll, step: h.renewNext, tearDown: h.releaseAll}
		},
	}
}

// A leaseSet is leases that a client has of its own.
type leaseSet struct {
	*worker
	count  int
	leases []system.Lease
	next   int
}

func (h *leaseSet) acquireAll(ctx context.Context) error {
	for i := range h.count {
		lease, err := h.client.Acquire(ctx, fmt.Sprintf("renew:%03d:%05d", h.number, i), false)
		if err != nil {
			return err
		}
		h.leases = append(h.leases, lease)
	}
	return nil
}

// paced returns a turn that renews the next lease when it is due: each lease once in that time. The
// clients are out of step with one another. Leases of a system.Keeper are renewed by it.
func (h *leaseSet) paced(each time.Duration, clients int) func(context.Context) error {
	var due time.Time
	gap := each / time.Duration(h.count)
	return func(ctx context.Context) error {
		if keeper, ok := h.client.(system.SelfRenewing); ok {
			return h.countRenewal(ctx, keeper)
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

func (h *leaseSet) renewNext(ctx context.Context) error {
	h.next = (h.next + 1) % h.count
	began := time.Now()
	if err := h.leases[h.next].Renew(ctx); err != nil {
		return err
	}
	h.record(renew, time.Since(began))
	h.countOps(1)
	return nil
}

// countRenewal waits until one of the leases was renewed.
func (h *leaseSet) countRenewal(ctx context.Context, keeper system.SelfRenewing) error {
	select {
	case took := <-keeper.Renewed():
		h.record(renew, took)
		h.countOps(1)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (h *leaseSet) releaseAll(ctx context.Context) error {
	var err error
	for _, lease := range h.leases {
		err = cmp.Or(err, lease.Release(ctx))
	}
	return err
}
