package faults_test

import (
	"context"
	"syscall"
	"time"
)

func replicaNemeses() []nemesis {
	return []nemesis{
		{"a replica is killed", 2, replicas, 25, durationRange{0, 1500 * time.Millisecond}, killReplicas},
		{"a replica is told to stop", 2, replicas, 0, durationRange{0, time.Second}, stopReplicas},
		{"a replica hangs", 2, replicas, 25, durationRange{500 * time.Millisecond, 4 * time.Second}, hangReplicas},
	}
}

func killReplicas(_ context.Context, d *deployment, f fault) (undoFunc, error) {
	return restart(d, f), f.each(d, (*replica).kill)
}

func stopReplicas(_ context.Context, d *deployment, f fault) (undoFunc, error) {
	return restart(d, f), f.each(d, (*replica).stop)
}

// restart starts the replicas again, and again if they do not come up, as a supervisor
// does.
func restart(d *deployment, f fault) undoFunc {
	return func(ctx context.Context) error {
		return f.each(d, func(r *replica) error {
			return retry(ctx, func() error { return r.start(ctx) })
		})
	}
}

func hangReplicas(_ context.Context, d *deployment, f fault) (undoFunc, error) {
	goOn := func(context.Context) error {
		return f.each(d, func(r *replica) error { return r.process.signal(syscall.SIGCONT) })
	}
	return goOn, f.each(d, func(r *replica) error { return r.process.signal(syscall.SIGSTOP) })
}
