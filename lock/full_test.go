package lock_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestAFullLockNamesItsLimit: a lock with MaxHolders leases is refused with the limit, and with when a lease ends.
func TestAFullLockNamesItsLimit(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		mode lock.Mode // of the leases of the lock
		give []lock.Member
		want string
	}{
		"readers of one lock":         {lock.Shared, members(sharedLock("repo")), "repo has 1000 leases"},
		"writers below a root":        {lock.IntentionExclusive, members(exclusiveLock("repo:a")), "repo has 1000 leases"},
		"readers below a root":        {lock.IntentionShared, members(sharedLock("repo:a")), "repo has 1000 leases"},
		"a set, partly below a root":  {lock.IntentionShared, members(sharedLock("repo:a"), sharedLock("z")), "repo has 1000 leases, the most"},
		"a reader, beside readers":    {lock.IntentionShared, members(sharedLock("repo")), "repo has 1000 leases"},
		"a writer, against all those": {lock.IntentionShared, members(exclusiveLock("repo")), `"h" holds the lock repo:x below`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			full := lock.Record{Name: "repo", Token: 1}
			for n := 1; n <= lock.MaxHolders; n++ {
				l := lock.Lease{
					ID: lock.LeaseID{1: byte(n / 256), 2: byte(n)}, Name: "repo", Mode: c.mode, Holder: "h", Slot: n, Token: 1, TTL: time.Hour,
					ExpiresAt: t0.Add(time.Duration(n) * time.Minute),
				}
				if c.mode.IsIntention() {
					l.Set, l.Below = []string{"repo", "repo:x"}, []string{"repo:x"}
				}
				full.Leases = append(full.Leases, l)
			}
			a, err := (lock.Acquire{Locks: c.give, Holder: "other", LeaseID: lock.LeaseID{9}}).Resolve(anyBounds())
			if err != nil {
				t.Fatal(err)
			}
			cmd, err := a.In(&lock.Policy{Trees: lock.Trees{"repo": {}}})
			if err != nil {
				t.Fatal(err)
			}
			v := lock.View{Now: t0, Self: 1, Tokens: func() lock.Token { return 2 }}
			for _, name := range cmd.Names() {
				v.Locks = append(v.Locks, lock.Record{Name: name})
			}
			v.Locks[slices.Index(cmd.Names(), "repo")] = full
			refused := new(lock.Error)
			if !errors.As(cmd.Apply(v).Err, &refused) || refused.Code != lock.ErrHeld || refused.RetryAfter != time.Minute || !strings.Contains(refused.Detail, c.want) {
				t.Errorf("refused with %+v", refused)
			}
			if strings.Contains(c.want, "1000") && !strings.Contains(refused.Detail, "that a lock can have") {
				t.Errorf("the limit is not named: %s", refused.Detail)
			}
		})
	}
}
