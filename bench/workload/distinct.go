package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/result"
)

// each is how many names a client has of its own.
const each = 100

// Distinct has each client take and give back one lock after the other, of names that nobody
// else uses.
func Distinct(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("distinct-", clients), Clients: clients, Unit: "pairs", ownLoad: true,
		Title: fmt.Sprintf("Acquire and release, %s, each on names of its own", counted(clients)),
		job: func(w *worker) job {
			spots := make([]*spot, each)
			for i := range spots {
				spots[i] = w.field.spot(fmt.Sprintf("distinct:%03d:%03d", w.number, i))
			}
			next := 0
			return job{turn: func(ctx context.Context) error {
				next++
				return w.pair(ctx, spots[next%each])
			}}
		},
	}
}

// pair takes a lock that is free and gives it back.
func (w *worker) pair(ctx context.Context, s *spot) error {
	began := time.Now()
	lease, err := w.client.Acquire(ctx, s.name, false)
	if err != nil {
		return err
	}
	w.took(acquire, time.Since(began))
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
	w.took(release, time.Since(began))
	w.did(1)
	return nil
}

// counted tells how many clients there are.
func counted(clients int) string {
	if clients == 1 {
		return "1 client"
	}
	return result.Grouped(clients) + " clients"
}
