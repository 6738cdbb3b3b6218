package integration_test

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
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

// testTimeout bounds waits for events that must happen.
const testTimeout = time.Minute

// remoteGuards are guards of different locks that reach the service through a proxy.
type remoteGuards struct {
	*testing.T
	proxy  *tcpproxy.Proxy
	direct *client.Client // bypasses the proxy
	leases []*guard.Lease
}

func newRemoteGuards(t *testing.T, size int, o guard.Options) *remoteGuards {
	t.Helper()
	base := replica.Start(t, pgtest.URL(t))
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	c := &remoteGuards{T: t, proxy: tcpproxy.New(t, u.Host), direct: replica.Connect(t, client.Options{BaseURL: base}), leases: make([]*guard.Lease, size)}
	locks := replica.Connect(t, client.Options{BaseURL: "http://" + c.proxy.Address})
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

// releaseAll releases all leases, so that no goroutine outlives the test.
func (c *remoteGuards) releaseAll() {
	c.proxy.Restore()
	var all sync.WaitGroup
	for _, l := range c.leases {
		all.Go(func() {
			err := c.answered(l.Release)
			if err != nil && !errors.Is(err, lock.ErrLeaseLost) {
				c.Errorf("%s: %v", l.Name(), err)
			}
		})
	}
	all.Wait()
}

// answered repeats the call while its outcome is unknown: the proxy may just have closed the connection, and the
// machine may be busy.
func (c *remoteGuards) answered(call func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(c.Context(), testTimeout)
	defer cancel()
	for {
		if err := call(ctx); !errors.Is(err, lock.ErrUnknownOutcome) || ctx.Err() != nil {
			return err
		}
	}
}

// TestWorkStopsBeforeTheLeaseEndsOnADeadConnection holds a hundred leases when the connection dies.
// It compares two times on the machine's clock: when the work was stopped, and when the lock was
// granted to the next holder.
func TestWorkStopsBeforeTheLeaseEndsOnADeadConnection(t *testing.T) {
	t.Parallel()
	c := newRemoteGuards(t, 100, guard.Options{TTL: 6 * time.Second, Margin: 2 * time.Second})
	defer c.releaseAll()
	c.proxy.Stall()
	var all sync.WaitGroup
	for _, l := range c.leases {
		all.Go(func() {
			next := make(chan lock.Grant, 1)
			all.Go(func() { next <- c.acquireNext(l.Name()) })
			ctx, cancel := l.Context(t.Context())
			defer cancel()
			<-ctx.Done()
			stopped := time.Now()
			if g := <-next; !stopped.Before(g.AcquiredAt) || g.Token <= l.Token() {
				t.Errorf("%s: work stopped at %v with token %d; the next holder acquired at %v with token %d", l.Name(), stopped, l.Token(), g.AcquiredAt, g.Token)
			}
		})
	}
	all.Wait()
}

// acquireNext waits for the lock, bypassing the proxy.
func (c *remoteGuards) acquireNext(name string) (g lock.Grant) {
	a := lock.Acquire{
		Locks: lock.One(name), LeaseID: lock.LeaseID(uuid.New()), Holder: "next", TTL: time.Hour, Wait: lock.MaxWait,
	}
	err := c.answered(func(ctx context.Context) (err error) {
		g, err = c.direct.Acquire(ctx, a)
		return err
	})
	if err != nil {
		c.Error(err)
	}
	return g
}

// TestALeaseThatAFailOverHasLostIsFound although its session was not lost, and renews it: when the pause of grants is
// over, the lock is granted to others. The counts of revoked leases were lost, too.
func TestALeaseThatAFailOverHasLostIsFound(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	outside := pgtest.Connect(t, database)
	locks := replica.Connect(t, client.Options{BaseURL: replica.Start(t, database)})
	s, err := guard.OpenSession(t.Context(), locks, guard.SessionOptions{TTL: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	acquire := func(name string) *guard.Lease {
		l, err := guard.Acquire(t.Context(), locks, name, guard.Options{Session: s})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	kept, lost, revoked := acquire("kept"), acquire("lost"), acquire("revoked")
	if _, err := locks.Revoke(t.Context(), lock.Revoke{Name: "revoked", Token: revoked.Token(), Reason: "stuck"}); err != nil {
		t.Fatal(err)
	}
	<-revoked.Done()
	pgtest.Exec(t, outside, `update paddock.epochs set timeline = 'FFFFFFFF' where epoch = (select max(epoch) from paddock.epochs);
		update paddock.sessions set revoked_leases = 0;
		delete from paddock.records where name = 'lost'`)
	select {
	case <-lost.Done():
	case <-time.After(testTimeout):
	}
	if err := lost.Err(); !errors.Is(err, lock.ErrLeaseLost) || kept.Err() != nil || s.Err() != nil {
		t.Errorf("the lost lease is %v, the kept one %v, the session %v", err, kept.Err(), s.Err())
	}
}
