package workload

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/paddock-lock/paddock/bench/paddock"
	"github.com/paddock-lock/paddock/bench/system"
)

// prefilled is a system with prefilled locks, named by paddock.FilledName.
type prefilled interface{ Filled() int }

// Growth returns a workload in which each client acquires and releases random locks from its share of the
// prefilled ones. Each run uses another random sequence, because a system may cache the last run's locks.
func Growth(clients int) Workload {
	return Workload{
		Name: fmt.Sprint("growth-", clients), Clients: clients, Unit: "pairs",
		Title: fmt.Sprintf("Acquire and release, %s, each on its own share of all locks", clientCount(clients)),
		job: func(w *worker) job {
			rng := rand.New(rand.NewPCG(rand.Uint64(), uint64(w.number)))
			return job{step: func(ctx context.Context) error {
				s, ok := w.system.(prefilled)
				if !ok {
					return system.ErrUnsupported
				}
				name := paddock.FilledName(1 + w.number + clients*rng.IntN(s.Filled()/clients))
				return w.acquireRelease(ctx, w.registry.lock(name))
			}}
		},
	}
}
