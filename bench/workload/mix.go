package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/bench/system"
)

// Mix has clients renew, acquire and release locks of their own, eight, one and one times in
// ten.
func Mix(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("mix-", clients), Clients: clients, Unit: "operations",
		Title: "Renew 80 %, acquire 10 %, release 10 %, " + counted(clients),
		job: func(w *worker) job {
			m := &mixed{worker: w, dice: rand.New(rand.NewPCG(1, uint64(w.number)))}
			for i := range each {
				m.free = append(m.free, w.field.spot(fmt.Sprintf("mix:%03d:%03d", w.number, i)))
			}
			return job{begin: m.fill, turn: m.turn, end: m.empty}
		},
	}
}

// A mixed client has locks of its own, some of which it holds.
type mixed struct {
	*worker
	dice *rand.Rand
	free []*spot
	held []held
}

type held struct {
	*spot
	lease system.Lease
}

// fill takes half of the locks.
func (m *mixed) fill(ctx context.Context) error {
	for range each / 2 {
		if err := m.acquireOne(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *mixed) turn(ctx context.Context) error {
	var err error
	switch die := m.dice.IntN(10); {
	case die == 0 && len(m.free) > 0 || len(m.held) == 0:
		err = m.acquireOne(ctx)
	case die == 1:
		err = m.releaseOne(ctx)
	default:
		err = m.renewOne(ctx)
	}
	if err == nil {
		m.did(1)
	}
	return err
}

func (m *mixed) acquireOne(ctx context.Context) error {
	s := take(m, &m.free)
	began := time.Now()
	lease, err := m.client.Acquire(ctx, s.name, false)
	if err != nil {
		return err
	}
	m.took(acquire, time.Since(began))
	m.held = append(m.held, held{s, lease})
	return m.granted(s, lease)
}

func (m *mixed) releaseOne(ctx context.Context) error {
	h := take(m, &m.held)
	if err := h.releasing(m.number); err != nil {
		return err
	}
	began := time.Now()
	if err := h.lease.Release(ctx); err != nil {
		return err
	}
	m.took(release, time.Since(began))
	m.free = append(m.free, h.spot)
	return nil
}

func (m *mixed) renewOne(ctx context.Context) error {
	began := time.Now()
	if err := m.held[m.dice.IntN(len(m.held))].lease.Renew(ctx); err != nil {
		return err
	}
	m.took(renew, time.Since(began))
	return nil
}

func (m *mixed) empty(ctx context.Context) error {
	for len(m.held) > 0 {
		if err := m.releaseOne(ctx); err != nil {
			return err
		}
	}
	return nil
}

// take removes one of them, any.
func take[T any](m *mixed, from *[]T) T {
	all := *from
	i, last := m.dice.IntN(len(all)), len(all)-1
	all[i], all[last] = all[last], all[i]
	*from = all[:last]
	return all[last]
}
