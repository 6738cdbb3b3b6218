package workload

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
)

// renewInterval is the interval between renewals of a lease with a TTL of 30 s.
const renewInterval = 10 * time.Second

// Renewals returns a workload in which clients together hold that many leases and renew each of them
// every ten seconds, evenly spread. A system.SelfRenewing client renews its leases itself.
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

// Renew returns a workload in which clients renew their leases as fast as possible.
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

// Heartbeats returns a workload in which a client renews one lease as fast as possible. The systems differ in what the
// lease stands for.
func Heartbeats() Workload {
	return Workload{
		Name: "heartbeat", Clients: 1, Unit: "heartbeats", Title: "Heartbeats of a session, 1 client",
		job: func(w *worker) job {
			h := &leaseSet{worker: w, count: 1}
			return job{setUp: h.acquireAll, step: h.renewNext, tearDown: h.releaseAll}
		},
	}
}

// A leaseSet contains the leases of a client.
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

// paced returns a step that renews the next lease when it is due, each lease once per interval. The clients
// are spread evenly over the interval. A system.SelfRenewing client renews its leases itself.
func (h *leaseSet) paced(interval time.Duration, clients int) func(context.Context) error {
	var due time.Time
	gap := interval / time.Duration(h.count)
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

// countRenewal waits for a renewal by the client and counts it.
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
