package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// flagCuts: all connections of clients are closed every cutEvery.
var flagCuts = repeats{
	flag.Int("faults.cuts", 0, "cuts of all connections in TestCutConnectionsCostNoPlace; 0: 6, or 60 in the long form"), 6, 60}

const (
	cutEvery   = 2 * time.Second
	cutClients = 12 // half of them are guards
	cutHold    = 250 * time.Millisecond
	cutWait    = 40 * time.Second // no call may need so long
	cutTTL     = 5 * time.Second  // so short that a guard waits with it, since package verify expects one TTL of a lease_id
)

// TestCutConnectionsCostNoPlace: clients wait for one lock behind a proxy that cuts all connections every two seconds,
// so that each wait is cut. They repeat their calls, half of them at another replica. Each request has one place, from
// its first call to its grant.
func TestCutConnectionsCostNoPlace(t *testing.T) {
	t.Parallel()
	d := deploy(t, builds{normal: program(t), skewed: program(t)})
	s := &ringHarness{T: t, deployment: d, recorder: verify.NewRecorder()}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range cutClients {
		c, err := s.cutClient()
		if err != nil {
			t.Fatal(err)
		}
		use := c.useOnce
		if i%2 == 0 {
			use = c.useGuard
		}
		all.Go(func() {
			for n := 0; ctx.Err() == nil && !t.Failed(); n++ {
				use(fmt.Sprintf("client %d.%d", i, n))
			}
		})
	}
	for range flagCuts.count() {
		time.Sleep(cutEvery)
		over := s.recorder.MarkFault("all connections are cut")
		for _, r := range d.replicas {
			r.clientProxy.cut()
		}
		over()
	}
	stop()
	all.Wait()
	s.checkPlaces()
}

// cutClient returns a client of the first two replicas.
func (s *ringHarness) cutClient() (*ringTask, error) {
	x := &ringTask{ringHarness: s}
	for r := range x.clients {
		c, err := s.replicas[r].client()
		if err != nil {
			return nil, err
		}
		x.clients[r] = s.recorder.Client(s.replicas[r].String(), c)
	}
	return x, nil
}

// useOnce acquires the lock, holds it for a moment, and releases it.
func (x *ringTask) useOnce(holder string) {
	a := lock.Acquire{Locks: lock.One("ring:cut"), Holder: holder, LeaseID: lock.LeaseID(uuid.New()), TTL: 2 * cutWait, Wait: cutWait}
	err := x.retried(a.Wait, func(ctx context.Context, s paddock.Service) error {
		_, err := s.Acquire(ctx, a)
		return err
	})
	if err != nil {
		x.Errorf("%s waited, and was answered with %v", holder, err)
		return
	}
	time.Sleep(cutHold)
	x.release(a)
}

// useGuard does so with a guard, which uses one replica.
func (x *ringTask) useGuard(holder string) {
	l, err := guard.Acquire(x.Context(), x.clients[0], "ring:cut", guard.Options{Holder: holder, Wait: cutWait, TTL: cutTTL})
	if err != nil {
		x.Errorf("%s waited, and was answered with %v", holder, err)
		return
	}
	time.Sleep(cutHold)
	if err := l.Release(x.Context()); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
		x.Errorf("a release of %s is answered with %v", holder, err)
	}
}

// checkPlaces checks the history, and that each waiter has joined the queue once and left it by its grant.
func (s *ringHarness) checkPlaces() {
	s.check()
	c, err := s.replicas[2].client()
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.Context(), stepTimeout)
	defer cancel()
	events, err := verify.Collect(ctx, c, "ring:")
	if err != nil {
		s.Fatal(err)
	}
	joined := map[string]int{}
	for _, e := range events {
		switch e.Kind {
		case lock.Queued:
			if joined[e.Holder]++; joined[e.Holder] > 1 {
				s.Errorf("%s has joined the queue again, at revision %d", e.Holder, e.Revision)
			}
		case lock.Dequeued:
			s.Errorf("%s has lost its place, at revision %d: %s", e.Holder, e.Revision, e.Reason)
		}
	}
	cut := 0
	for _, call := range s.recorder.History().Calls {
		if a, ok := call.Request.(lock.Acquire); ok && a.Wait > 0 && call.Outcome() == verify.Unknown {
			cut++
		}
	}
	if s.Logf("%d requests waited, and %d of their calls were cut", len(joined), cut); cut < cutClients {
		s.Error("hardly any wait was cut")
	}
}
