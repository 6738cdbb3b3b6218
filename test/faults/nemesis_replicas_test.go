package faults_test

import (
	"context"
	"syscall"
	"time"
)

func ofReplicas() []nemesis {
	return []nemesis{
		{"a replica is killed", 2, replicas, 25, span{0, 1500 * time.Millisecond}, killReplicas},
		{"a replica is told to stop", 2, replicas, 0, span{0, time.Second}, stopReplicas},
		{"a replica hangs", 2, replicas, 25, span{500 * time.Millisecond, 4 * time.Second}, hangReplicas},
	}
}

func killReplicas(_ context.Context, d *deployment, f fault) (cure, error) {
	return restart(d, f), f.each(d, (*replica).kill)
}

func stopReplicas(_ context.Context, d *deployment, f fault) (cure, error) {
	return restart(d, f), f.each(d, (*replica).stop)
}

// restart starts the replicas again, and again if they do not come up, as a supervisor
// does.
func restart(d *deployment, f fault) cure {
	return func(ctx context.Context) error {
		return f.each(d, func(r *replica) error {
			return until(ctx, func() error { return r.start(ctx) })
		})
	}
}

func hangReplicas(_ context.Context, d *deployment, f fault) (cure, error) {
	goOn := func(context.Context) error {
		return f.each(d, func(r *replica) error { return r.process.signal(syscall.SIGCONT) })
	}
	return goOn, f.each(d, func(r *replica) error { return r.process.signal(syscall.SIGSTOP) })
}
