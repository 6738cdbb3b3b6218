package workload

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/paddock-lock/paddock/bench/paddock"
	"github.com/paddock-lock/paddock/bench/system"
)

// prefilled is a system that has had so many locks, by paddock.FilledName.
type prefilled interface{ Filled() int }

// Growth has each client take and give back locks of its own, at random, out of all that the
// system has had before. Each run has others: a system may remember those of the last.
func Growth(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("growth-", clients), Clients: clients, Unit: "pairs",
		Title: fmt.Sprintf("Acquire and release, %s, each on its own share of all locks", clientCount(clients)),
		job: func(w *worker) job {
			dice := rand.New(rand.NewPCG(rand.Uint64(), uint64(w.number)))
			return job{step: func(ctx context.Context) error {
				s, ok := w.system.(prefilled)
				if !ok {
					return system.ErrUnsupported
				}
				name := paddock.FilledName(1 + w.number + clients*dice.IntN(s.Filled()/clients))
				return w.acquireRelease(ctx, w.registry.lock(name))
			}}
		},
	}
}
