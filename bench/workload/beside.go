package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
)

const (
	// shortRenewInterval is how often a lease with a TTL of two seconds is renewed.
	shortRenewInterval = 2 * time.Second / 3
	// joinsPerLock is the number of calls that join the queue of one lock.
	joinsPerLock = 900
	// joinWindow is the time after the warm-up within which all of them join.
	joinWindow = time.Second
)

// BesideJoins returns a workload that renews leases, one per client, while other clients join the queues
// of held locks: once each, at the start of the measurement. The queues remain until the end. Without
// joins, it measures the same renewals on an idle service. It measures the servers' memory, too, the last time when
// all clients have left and the settling time is over.
func BesideJoins(leases, joins int, settle time.Duration) Workload {
	beside := "beside nothing else"
	if joins > 0 {
		beside = fmt.Sprintf("beside %s joins of queues", result.Grouped(joins))
	}
	locks := (joins + joinsPerLock - 1) / joinsPerLock
	return Workload{
		Name: fmt.Sprintf("renew-%d-joins-%d", leases, joins), Clients: leases + locks + joins, Unit: "renewals", Paced: true, crowd: true, settle: settle,
		Title: fmt.Sprintf("%d leases, each renewed every %.2f s, %s", leases, shortRenewInterval.Seconds(), beside),
		job: func(w *worker) job {
			if w.number < leases {
				h := &leaseSet{worker: w, count: 1}
				return job{setUp: h.acquireAll, step: h.paced(shortRenewInterval, leases), tearDown: h.releaseAll}
			}
			n := w.number - leases
			s := w.registry.lock(fmt.Sprintf("beside:%03d", n%locks))
			if n < locks {
				o := &lockHolder{worker: w, trackedLock: s}
				return job{setUp: o.acquire, step: w.idle, tearDown: o.release}
			}
			return job{step: func(ctx context.Context) error {
				if w.phase.Load() != measuring {
					return w.idle(ctx)
				}
				return w.handOff(ctx, s)
			}}
		},
	}
}

// idle pauses. Many workers wait for another phase, so each checks rarely.
func (w *worker) idle(ctx context.Context) error {
	return pause(ctx, joinWindow/2+joinWindow/2*time.Duration(w.number%100)/100)
}

// An lockHolder holds a lock until the end of the run.
type lockHolder struct {
	*worker
	*trackedLock
	lease system.Lease
}

func (o *lockHolder) acquire(ctx context.Context) (err error) {
	if o.lease, err = o.client.Acquire(ctx, o.name, false); err != nil {
		return err
	}
	return o.worker.granted(o.trackedLock, o.lease)
}

func (o *lockHolder) release(ctx context.Context) error {
	if o.lease == nil {
		return nil
	}
	if err := o.releasing(o.number); err != nil {
		return err
	}
	return o.lease.Release(ctx)
}
