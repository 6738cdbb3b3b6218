package store_test

import (
	"errors"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestAKeyHasOnlySoManyLeases in the locks of a rule, on one replica; and another key has its own.
func TestAKeyHasOnlySoManyLeases(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	until(t, "the rule is set", func() bool {
		_, err := s.SetRule(t.Context(), lock.Rule{Scope: "jobs:", MaxLeases: 2})
		return err == nil
	})
	of := func(name, key string) lock.Acquire {
		a := acquire(name)
		a.Key = key
		return a
	}
	until(t, "the replica knows the rule", func() bool { // half a second
		g := mustAcquire(t, s, of("jobs:0", "team"))
		defer mustRelease(t, s, g)
		return g.Key == "team"
	})
	first := of("jobs:1", "team")
	g := mustAcquire(t, s, first)
	mustAcquire(t, s, of("jobs:2", "team"))
	for range 3 {
		if _, err := s.Acquire(t.Context(), of("jobs:3", "team")); !errors.Is(err, lock.ErrTooManyLeases) {
			t.Errorf("one lease more: %v", err)
		}
	}
	mustAcquire(t, s, first) // it is found again
	mustAcquire(t, s, of("jobs:3", "other"))
	mustAcquire(t, s, of("elsewhere", "team"))
	mustRelease(t, s, g)
	until(t, "the key has room again", func() bool {
		_, err := s.Acquire(t.Context(), of("jobs:4", "team"))
		return err == nil
	})
}
