package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// The tests of this file repeat the examples of package guard on the real service.

func TestWorkUnderALeaseWritesWithItsToken(t *testing.T) {
	t.Parallel()
	locks := replica.Client(t, pgtest.URL(t))
	err := guard.Do(t.Context(), locks, "jobs:nightly", guard.Options{Holder: "worker-1"}, func(ctx context.Context, _ *guard.Lease) error {
		err := guard.Do(ctx, locks, "jobs:nightly", guard.Options{Holder: "worker-2"}, nil)
		if refusal := (*lock.Error)(nil); !errors.As(err, &refusal) || refusal.Code != lock.ErrHeld || refusal.Holder != "worker-1" {
			t.Errorf("the second worker was refused with %v", err)
		}
		token, _ := lock.TokenFrom(ctx)
		_, err = locks.WriteFenced(ctx, lock.FencedWrite{
			Key: "accounts:42", Lock: "jobs:nightly", Token: token, Value: json.RawMessage(`{"balance":100}`),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if written, err := locks.ReadFenced(t.Context(), "accounts:42"); err != nil || string(written.Value) != `{"balance":100}` {
		t.Errorf("the value is %s, %v", written.Value, err)
	}
}

func TestARevokedLeaseEndsItsContext(t *testing.T) {
	t.Parallel()
	locks := replica.Client(t, pgtest.URL(t))
	lease, err := guard.Acquire(t.Context(), locks, "reports", guard.Options{TTL: 3 * time.Second, Wait: testTimeout})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locks.Revoke(t.Context(), lock.Revoke{Name: "reports", Token: lease.Token(), Reason: "maintenance"}); err != nil {
		t.Fatal(err)
	}
	<-lease.Done()
	if !errors.Is(lease.Err(), lock.ErrLeaseLost) || !errors.Is(lease.Release(t.Context()), lock.ErrLeaseLost) {
		t.Errorf("the lease ended with %v", lease.Err())
	}
}

func TestAnObserverSeesTheTermOfALeader(t *testing.T) {
	t.Parallel()
	election := guard.NewElection(replica.Client(t, pgtest.URL(t)), "leader", guard.Options{Holder: "node-1"})
	term, err := election.Campaign(t.Context(), "10.0.0.1:7000")
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for leader, err := range election.Observe(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if leader == nil {
			break
		}
		if leader.Holder != "node-1" || leader.Token != term.Token() {
			t.Errorf("the leader is %+v", leader)
		}
		next := term.Resign
		if len(seen) == 0 {
			next = func(ctx context.Context) error { return term.Proclaim(ctx, "10.0.0.1:7001") }
		}
		if seen = append(seen, leader.Value); len(seen) <= 2 {
			if err := next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(seen) != 2 || seen[0] != "10.0.0.1:7000" || seen[1] != "10.0.0.1:7001" {
		t.Errorf("the leader's values were %q", seen)
	}
}

func TestASemaphoreHasItsCapacity(t *testing.T) {
	t.Parallel()
	uploads := guard.NewSemaphore(replica.Client(t, pgtest.URL(t)), "uploads", 3, guard.Options{Holder: "uploader"})
	for slot := 1; slot <= 3; slot++ {
		permit, err := uploads.Acquire(t.Context())
		if err != nil || permit.Slot() != slot {
			t.Fatalf("slot %d: %v", slot, err)
		}
		defer func() {
			if err := permit.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}()
	}
	if _, err := uploads.Acquire(t.Context()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("the fourth permit: %v", err)
	}
}

func TestReadersShareALockThatAWriterIsRefused(t *testing.T) {
	t.Parallel()
	catalogue := guard.NewRWLock(replica.Client(t, pgtest.URL(t)), "catalogue", guard.Options{})
	err := catalogue.DoRead(t.Context(), func(ctx context.Context, first *guard.Lease) error {
		return catalogue.DoRead(ctx, func(ctx context.Context, second *guard.Lease) error {
			if first.Token() != second.Token() {
				t.Errorf("the readers have the tokens %d and %d", first.Token(), second.Token())
			}
			if _, err := catalogue.Write(ctx); !errors.Is(err, lock.ErrHeld) {
				t.Errorf("a writer beside readers: %v", err)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}
