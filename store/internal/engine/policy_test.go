package engine

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestAChangeOfThePolicyUndoesADecisionInFlight: the replica has read the lock, and stands still until the change is
// answered by another one. Then it decides, or has decided, by the policy before.
func TestAChangeOfThePolicyUndoesADecisionInFlight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*replica) error
		want   error
	}{
		"a freeze": {func(r *replica) error {
			_, err := r.policy.Freeze(r.Context(), lock.FreezeRequest{Scope: "jobs:", Reason: "r"})
			return err
		}, lock.ErrFrozen},
		"a rule": {func(r *replica) error {
			_, err := r.policy.SetRule(r.Context(), lock.Rule{Scope: "jobs:", MaxTTL: time.Second})
			return err
		}, lock.ErrInvalid},
	} {
		for _, cached := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url := pgtest.URL(t)
				paused, other := newReplica(t, url, 1), newReplica(t, url, 2)
				change := func() {
					if err := c.change(other); err != nil {
						t.Error(err)
					}
				}
				if cached { // nothing is read: the decision is as old as the cache
					paused.releases(paused.acquires("jobs:a"))
					change()
				} else {
					paused.afterLook = change
				}
				if out, err := paused.Do(t.Context(), wants("jobs:a")); !errors.Is(err, c.want) {
					t.Errorf("decided %+v, %v; want %v", out, err, c.want)
				}
			})
		}
	}
}
