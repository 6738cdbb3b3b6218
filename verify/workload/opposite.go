package workload

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A deadlock is found after its calls have waited for a second. The waits are so much longer that package verify can
// tell whether it is broken.
const (
	minPatience = 7 * time.Second
	maxPatience = 9 * time.Second
)

// maxOppositeHold is the longest time between the two acquires.
const maxOppositeHold = 3 * time.Second

// turnsPerPair is after how many turns the names of the two locks are replaced.
const turnsPerPair = 100

// pairs is the state of the turns that acquire two locks in opposite orders.
type pairs struct {
	active atomic.Int64 // clients that take such a turn now
	begun  atomic.Int64 // turns
}

// maxOpposite returns how many clients may take such a turn at a time: they mostly wait, so the others make the calls.
func (o Options) maxOpposite() int64 { return max(2, int64(o.Clients)/8) }

// useOpposite acquires two locks one after the other, in the other order than the turn before. The second acquire is of
// a part of the task of the first lease, which is renewed meanwhile. It returns false if enough clients do that.
func (c *client) useOpposite(p plan) bool {
	defer c.pairs.active.Add(-1)
	if c.pairs.active.Add(1) > c.maxOpposite() {
		return false
	}
	n := c.pairs.begun.Add(1) - 1
	first, second := c.taskLease(p, n, 0), c.taskLease(p, n, 1)
	if c.sendAcquire(&first, p.via, never) != nil {
		return true
	}
	stop := c.keepAlive(first, p.via)
	c.sleep(p.hold)
	if c.over.Err() == nil && c.sendAcquire(&second, p.via+1, never) == nil {
		c.releaseHeld(second, p.via)
	}
	stop()
	c.releaseHeld(first, p.via)
	return true
}

// releaseHeld releases a lease, and remembers it if that was answered.
func (c *client) releaseHeld(l lease, via int) {
	if err := c.release(l, via); !isLost(err) {
		c.remember(l)
	}
}

// taskLease returns the nth pair's first or second lease, to be acquired.
func (c *client) taskLease(p plan, n int64, which int) lease {
	side := [...]string{"left", "right"}[(n+int64(which))%2]
	task := fmt.Sprintf("c%d-%d", c.number, c.turn)
	if which == 1 {
		task += ".second"
	}
	return lease{acquire: lock.Acquire{
		Locks: lock.One(fmt.Sprintf("%s:%s.%d", c.Prefix, side, n/turnsPerPair)), LeaseID: lock.LeaseID(uuid.New()),
		Holder: fmt.Sprintf("%s c%d #%d %s", c.Prefix, c.number, c.turn, [...]string{"first", "second"}[which]),
		Task:   lock.TaskID(task), TTL: p.acquire.TTL, Wait: p.patience,
	}}
}

// keepAlive renews a lease until stop is called, as another recorded client: the calls of one client do not overlap.
func (c *client) keepAlive(l lease, via int) (stop func()) {
	keeper := c.client(c.number, c.rec)
	keeper.inLull = true
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		for n := 1; ; n++ {
			select {
			case <-done:
				return
			case <-time.After(l.acquire.TTL / 3):
			}
			if keeper.renew(&l, step{verb: verify.Renew, via: (via + n) % len(c.services), cancelAfter: never}) != nil {
				return
			}
		}
	}()
	return func() {
		close(done)
		<-over
		c.stats.add(keeper.stats)
	}
}
