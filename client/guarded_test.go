package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// A crew is guards that reach the service over a bad line, each of a lock of its own.
type crew struct {
	*testing.T
	line   *tcpproxy.Proxy
	direct *client.Client // around the line
	leases []*guard.Lease
}

func newCrew(t *testing.T, size int, o guard.Options) *crew {
	t.Helper()
	base := served(t, pgtest.URL(t))
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	c := &crew{T: t, line: tcpproxy.New(t, u.Host), direct: open(t, client.Options{BaseURL: base}), leases: make([]*guard.Lease, size)}
	locks := open(t, client.Options{BaseURL: "http://" + c.line.Address})
	var all sync.WaitGroup
	for i := range c.leases {
		all.Go(func() {
			var err error
			if c.leases[i], err = guard.Acquire(t.Context(), locks, fmt.Sprintf("jobs:%d", i), o); err != nil {
				t.Error(err)
			}
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
	return c
}

// end releases all leases, so that nothing goes on after the test.
func (c *crew) end() {
	c.line.Restore()
	var all sync.WaitGroup
	for _, l := range c.leases {
		all.Go(func() {
			if err := l.Release(c.Context()); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
				c.Errorf("%s: %v", l.Name(), err)
			}
		})
	}
	all.Wait()
}

// TestTheWorkStopsBeforeTheLeaseEndsOnADeadLine compares two instants of one
// machine's clock: when each of a hundred works was stopped, and when the lock was granted to the
// next. All leases are in the middle of something else when the line goes dead.
func TestTheWorkStopsBeforeTheLeaseEndsOnADeadLine(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 100, guard.Options{TTL: 6 * time.Second, Margin: 2 * time.Second})
	defer c.end()
	c.line.Stall()
	var all sync.WaitGroup
	for _, l := range c.leases {
		all.Go(func() {
			next := make(chan lock.Grant, 1)
			all.Go(func() { next <- c.next(l.Name()) })
			ctx, cancel := l.Context(t.Context())
			defer cancel()
			<-ctx.Done()
			stopped := time.Now()
			if g := <-next; !stopped.Before(g.AcquiredAt) || g.Token <= l.Token() {
				t.Errorf("%s: stopped at %v with token %d; the next has it since %v with %d", l.Name(), stopped, l.Token(), g.AcquiredAt, g.Token)
			}
		})
	}
	all.Wait()
}

// next waits for the lock around the line.
func (c *crew) next(name string) lock.Grant {
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	g, err := c.direct.Acquire(ctx, lock.Acquire{
		Name: name, LeaseID: lock.LeaseID(uuid.New()), Holder: "next", TTL: time.Hour, Wait: lock.MaxWait,
	})
	if err != nil {
		c.Error(err)
	}
	return g
}

func TestADeadLineThatComesBackInTimeStopsNobody(t *testing.T) {
	t.Parallel()
	c := newCrew(t, 20, guard.Options{TTL: 8 * time.Second})
	defer c.end()
	c.line.Stall()
	c.become(guard.AtRisk)
	c.line.Restore()
	c.become(guard.Held)
}

// become waits until all leases are in that state.
func (c *crew) become(state guard.State) {
	c.Helper()
	for _, l := range c.leases {
		for l.State() != state {
			select {
			case <-l.Done():
				c.Fatalf("%s: %v", l.Name(), l.Err())
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}
