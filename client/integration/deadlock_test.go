package integration_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// TestOneOfTwoGuardsInOppositeOrderGivesWay, through two replicas, with nothing configured. When it has released its
// lock, the other one goes on.
func TestOneOfTwoGuardsInOppositeOrderGivesWay(t *testing.T) {
	t.Parallel()
	database := pgtest.URL(t)
	var both, all sync.WaitGroup
	both.Add(2)
	var refused, done atomic.Int64
	transfer := func(c *client.Client, from, to, holder string) error {
		o := guard.Options{Wait: guard.Forever, Holder: holder}
		return guard.Do(t.Context(), c, from, o, func(ctx context.Context, _ *guard.Lease) error {
			both.Done()
			both.Wait()
			return guard.Do(ctx, c, to, o, func(context.Context, *guard.Lease) error { return nil })
		})
	}
	for i, names := range [][]string{{"accounts:1", "accounts:2"}, {"accounts:2", "accounts:1"}} {
		c := replica.Client(t, database)
		all.Go(func() {
			err := transfer(c, names[0], names[1], fmt.Sprint("transfer ", i))
			switch e := new(lock.Error); {
			case err == nil:
				done.Add(1)
			case errors.As(err, &e) && e.Code == lock.ErrDeadlock && len(e.Cycle) == 2 && strings.Contains(e.Detail, names[0]) && strings.Contains(e.Detail, names[1]):
				refused.Add(1)
			default:
				t.Errorf("transfer %d: %v", i, err)
			}
		})
	}
	if all.Wait(); refused.Load() != 1 || done.Load() != 1 {
		t.Errorf("%d were refused for the deadlock, and %d went on", refused.Load(), done.Load())
	}
}

// TestANestedGuardIsToldAtOnce: it would wait for its own lock; a guard without the context of the lease waits.
func TestANestedGuardIsToldAtOnce(t *testing.T) {
	t.Parallel()
	c := replica.Client(t, pgtest.URL(t))
	o := guard.Options{Wait: guard.Forever}
	err := guard.Do(t.Context(), c, "jobs", o, func(ctx context.Context, _ *guard.Lease) error {
		return guard.Do(ctx, c, "jobs", o, func(context.Context, *guard.Lease) error { return errors.New("granted twice") })
	})
	if !errors.Is(err, lock.ErrDeadlock) {
		t.Errorf("it is answered with %v", err)
	}
}

// TestGoroutinesUnderOneLeaseMayWaitForEachOther: they lock another lock one after the other, which is no deadlock.
func TestGoroutinesUnderOneLeaseMayWaitForEachOther(t *testing.T) {
	t.Parallel()
	c := replica.Client(t, pgtest.URL(t))
	o := guard.Options{Wait: guard.Forever}
	err := guard.Do(t.Context(), c, "jobs", o, func(ctx context.Context, l *guard.Lease) error {
		if lock.TaskFrom(ctx) != l.Task() || l.Task() == "" {
			t.Errorf("the context has task %q, the lease %q", lock.TaskFrom(ctx), l.Task())
		}
		var all sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			all.Go(func() {
				errs[i] = guard.Do(ctx, c, "steps", o, func(ctx context.Context, inner *guard.Lease) error {
					if !strings.HasPrefix(string(inner.Task()), string(l.Task())+".") {
						t.Errorf("task %q is no part of %q", inner.Task(), l.Task())
					}
					return nil
				})
			})
		}
		all.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		t.Error(err)
	}
}
