package verify_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// TestTokensThatAServiceKeepsForLaterAreFound: two parts of a service draw tokens in blocks, so each lock's tokens
// grow, and those of two locks do not. Nothing else is wrong.
func TestTokensThatAServiceKeepsForLaterAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		order    string // the part of each grant
		mode     lock.Mode
		violates bool
	}{
		"the older block first": {"aabb", lock.Exclusive, false},
		"the newer block first": {"bba", lock.Exclusive, true},
		"in turns":              {"aba", lock.Permit, true},
		"phases of readers":     {"ba", lock.Shared, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parts := map[rune]*memlock.Memory{'a': memlock.New(), 'b': memlock.New()}
				rec := verify.NewRecorder()
				for range 64 {
					use(t, parts['b'].Replica(1), "another", lock.Exclusive)
				}
				for _, part := range c.order {
					use(t, rec.Client(via, parts[part].Replica(1)), "lock:"+string(part), c.mode)
				}
				r := rec.History().Check(verify.CheckOptions{})
				for _, check := range r.Checks {
					if found := len(check.Violations) > 0; found != (c.violates && check.Name == byTokenOrder) {
						t.Errorf("%s: found %t\n%s", check.Name, found, text(t, r))
					}
				}
			})
		})
	}
}

// use acquires the lock and releases it.
func use(t *testing.T, s paddock.Service, name string, mode lock.Mode) {
	t.Helper()
	a := lock.Acquire{Locks: []lock.Member{{Name: name, Mode: mode}}, LeaseID: lock.LeaseID(uuid.New()), Holder: uuid.NewString()}
	if mode == lock.Permit {
		a.Locks[0].Capacity = 2
	}
	g, err := s.Acquire(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), lock.Release{Locks: []string{name}, LeaseID: g.ID}); err != nil {
		t.Fatal(err)
	}
}

// TestAReaderThatJoinsHasAnOlderToken, which is no violation. Nor is it if a restore cut off the answer of the first one.
func TestAReaderThatJoinsHasAnOlderToken(t *testing.T) {
	for name, c := range map[string]struct {
		unanswered, restored bool // the grant of the first reader; the database
		violates             bool
	}{
		"the first is known":                  {},
		"the first is not known":              {unanswered: true, violates: true},
		"the first is not known, a restore":   {unanswered: true, restored: true},
		"the first is known, after a restore": {restored: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec, service := verify.NewRecorder(), memlock.New().Replica(1)
				recorded := rec.Client(via, service)
				reads := func(s paddock.Service) {
					a := lock.Acquire{Locks: []lock.Member{{Name: "rooms", Mode: lock.Shared}}, LeaseID: lock.LeaseID(uuid.New()), Holder: uuid.NewString()}
					if _, err := s.Acquire(t.Context(), a); err != nil {
						t.Fatal(err)
					}
				}
				if c.unanswered {
					reads(service)
				} else {
					reads(recorded)
				}
				use(t, recorded, "another", lock.Exclusive)
				reads(recorded)
				if r := rec.History().Check(verify.CheckOptions{Restored: c.restored}); r.OK() == c.violates {
					t.Error(text(t, r))
				}
			})
		})
	}
}
