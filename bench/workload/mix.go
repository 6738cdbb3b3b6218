package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// Mix returns a workload in which clients renew (80 %), acquire (10 %) and release (10 %) locks of their own.
func Mix(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("mix-", clients), Clients: clients, Unit: "operations",
		Title: "Renew 80 %, acquire 10 %, release 10 %, " + clientCount(clients),
		job: func(w *worker) job {
			m := &mixWorker{worker: w, rng: rand.New(rand.NewPCG(1, uint64(w.number)))}
			for i := range namesPerClient {
				m.free = append(m.free, w.registry.lock(fmt.Sprintf("mix:%03d:%03d", w.number, i)))
			}
			return job{setUp: m.fill, step: m.turn, tearDown: m.empty}
		},
	}
}

// A mixWorker is a client with locks of its own, some of which it holds.
type mixWorker struct {
	*worker
	rng  *rand.Rand
	free []*trackedLock
	held []held
}

type held struct {
	*trackedLock
	lease system.Lease
}

// fill acquires half of the locks.
func (m *mixWorker) fill(ctx context.Context) error {
	for range namesPerClient / 2 {
		if err := m.acquireOne(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *mixWorker) turn(ctx context.Context) error {
	var err error
	switch n := m.rng.IntN(10); {
	case n == 0 && len(m.free) > 0 || len(m.held) == 0:
		err = m.acquireOne(ctx)
	case n == 1:
		err = m.releaseOne(ctx)
	default:
		err = m.renewOne(ctx)
	}
	if err == nil {
		m.countOps(1)
	}
	return err
}

func (m *mixWorker) acquireOne(ctx context.Context) error {
	s := take(m, &m.free)
	began := time.Now()
	lease, err := m.client.Acquire(ctx, s.name, false)
	if err != nil {
		return err
	}
	m.record(acquire, time.Since(began))
	m.held = append(m.held, held{s, lease})
	return m.granted(s, lease)
}

func (m *mixWorker) releaseOne(ctx context.Context) error {
	h := take(m, &m.held)
	if err := h.releasing(m.number); err != nil {
		return err
	}
	began := time.Now()
	if err := h.lease.Release(ctx); err != nil {
		return err
	}
	m.record(release, time.Since(began))
	m.free = append(m.free, h.trackedLock)
	return nil
}

func (m *mixWorker) renewOne(ctx context.Context) error {
	began := time.Now()
	if err := m.held[m.rng.IntN(len(m.held))].lease.Renew(ctx); err != nil {
		return err
	}
	m.record(renew, time.Since(began))
	return nil
}

func (m *mixWorker) empty(ctx context.Context) error {
	for len(m.held) > 0 {
		if err := m.releaseOne(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take removes a random element.
func take[T any](m *mixWorker, from *[]T) T {
	all := *from
	i, last := m.rng.IntN(len(all)), len(all)-1
	all[i], all[last] = all[last], all[i]
	*from = all[:last]
	return all[last]
}
