package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// A keyed service acquires with an API key of that name.
type keyed struct {
	paddock.Service
	key string
}

func (k keyed) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return k.Service.Acquire(lock.WithCaller(ctx, lock.Caller{Name: k.key, KeyID: k.key}), a)
}

// TestAKeyHasOnlySoManyLeases in the locks of a rule, on one replica; and another key has its own.
func TestAKeyHasOnlySoManyLeases(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	until(t, "the rule is set", func() bool {
		_, err := s.SetRule(t.Context(), lock.Rule{Scope: "jobs:", MaxLeases: 2})
		return err == nil
	})
	team, other := keyed{s, "team"}, keyed{s, "other"}
	until(t, "the replica knows the rule", func() bool { // half a second
		g := mustAcquire(t, team, acquire("jobs:0"))
		defer mustRelease(t, s, g)
		return g.Key == "team"
	})
	first := acquire("jobs:1")
	g := mustAcquire(t, team, first)
	mustAcquire(t, team, acquire("jobs:2"))
	for range 3 {
		if _, err := team.Acquire(t.Context(), acquire("jobs:3")); !errors.Is(err, lock.ErrTooManyLeases) {
			t.Errorf("one lease more: %v", err)
		}
	}
	mustAcquire(t, team, first) // it is found again
	mustAcquire(t, other, acquire("jobs:3"))
	mustAcquire(t, team, acquire("elsewhere"))
	mustRelease(t, s, g)
	until(t, "the key has room again", func() bool {
		_, err := team.Acquire(t.Context(), acquire("jobs:4"))
		return err == nil
	})
}
