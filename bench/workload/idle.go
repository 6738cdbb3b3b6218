package workload

import (
	"context"
	"time"
)

// Idle returns a workload in which no client calls, to measure what an idle system takes in a second.
func Idle() Workload {
	return Workload{
		Name: "idle", Title: "Idle, with no client", Clients: 1, Unit: "seconds", Paced: true,
		job: func(w *worker) job {
			return job{step: func(ctx context.Context) error {
				defer w.countOps(1)
				return pause(ctx, time.Second)
			}}
		},
	}
}
