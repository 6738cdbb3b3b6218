package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
)

const (
	// besideEvery is how often a lease with a TTL of two seconds is renewed.
	besideEvery = 2 * time.Second / 3
	// besideQueue is how many calls join the queue of one lock.
	besideQueue = 900
	// besideWithin is within what time after the warm-up all of them join.
	besideWithin = time.Second
)

// BesideJoins renews leases, one for each of some clients, while other clients join the queues of locks
// that are held: once each, at the beginning of what is measured. The queues stand until the end.
// Without joins it shows what the same renewals take on an idle service.
func BesideJoins(leases, joins int) Workload {
	beside := "beside nothing else"
	if joins > 0 {
		beside = fmt.Sprintf("beside %s joins of queues", result.Grouped(joins))
	}
	locks := (joins + besideQueue - 1) / besideQueue
	return Workload{
		Name: fmt.Sprintf("renew-%d-joins-%d", leases, joins), Clients: leases + locks + joins, Unit: "renewals", Paced: true,
		Title: fmt.Sprintf("%d leases, each renewed every %.2f s, %s", leases, besideEvery.Seconds(), beside),
		job: func(w *worker) job {
			if w.number < leases {
				h := &holding{worker: w, count: 1}
				return job{begin: h.acquireAll, turn: h.atPace(besideEvery, leases), end: h.releaseAll}
			}
			n := w.number - leases
			s := w.field.spot(fmt.Sprintf("beside:%03d", n%locks))
			if n < locks {
				o := &owner{worker: w, spot: s}
				return job{begin: o.acquire, turn: w.rest, end: o.release}
			}
			return job{turn: func(ctx context.Context) error {
				if w.phase.Load() != measuring {
					return w.rest(ctx)
				}
				return w.turnAt(ctx, s)
			}}
		},
	}
}

// rest lets some time pass. Workers that wait for another phase are many, so each looks seldom.
func (w *worker) rest(ctx context.Context) error {
	return pause(ctx, besideWithin/2+besideWithin/2*time.Duration(w.number%100)/100)
}

// An owner holds a lock until the end of the run.
type owner struct {
	*worker
	*spot
	lease system.Lease
}

func (o *owner) acquire(ctx context.Context) (err error) {
	if o.lease, err = o.client.Acquire(ctx, o.name, false); err != nil {
		return err
	}
	return o.worker.granted(o.spot, o.lease)
}

func (o *owner) release(ctx context.Context) error {
	if o.lease == nil {
		return nil
	}
	if err := o.releasing(o.number); err != nil {
		return err
	}
	return o.lease.Release(ctx)
}
