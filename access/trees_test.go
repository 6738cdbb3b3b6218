package access_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

func (s *spy) DeclareTree(ctx context.Context, _ string) (lock.Tree, error) {
	return lock.Tree{}, s.wait(ctx, "DeclareTree", 0)
}
func (s *spy) RemoveTree(ctx context.Context, _ string) error { return s.wait(ctx, "RemoveTree", 0) }
func (s *spy) Trees(ctx context.Context) ([]lock.Tree, error) {
	return []lock.Tree{{Root: "billing:eu"}, {Root: "repo"}}, s.wait(ctx, "Trees", 0)
}

func TestTreesAreListedIfTheKeyCoversOneOfTheirNames(t *testing.T) {
	t.Parallel()
	locks := access.Guard(newSpy(), access.Limits{})
	for name, c := range map[string]struct {
		prefixes, want []string
	}{
		"no prefixes":        {nil, []string{"billing:eu", "repo"}},
		"the root":           {[]string{"repo"}, []string{"repo"}},
		"a part of the tree": {[]string{"repo:src"}, []string{"repo"}},
		"above the root":     {[]string{"billing"}, []string{"billing:eu"}},
		"beside the root":    {[]string{"billing:us", "repository"}, nil},
	} {
		trees, err := locks.Trees(withKey(t, access.Read, c.prefixes...))
		var roots []string
		for _, tree := range trees {
			roots = append(roots, tree.Root)
		}
		if err != nil || !slices.Equal(roots, c.want) {
			t.Errorf("%s: %v, %v", name, roots, err)
		}
	}
}

// TestALockAboveIsHidden from a key that covers a part of the tree.
func TestALockAboveIsHidden(t *testing.T) {
	t.Parallel()
	inner := memlock.New().Replica(1)
	locks := access.Guard(inner, access.Limits{})
	if _, err := inner.DeclareTree(t.Context(), "repo"); err != nil {
		t.Fatal(err)
	}
	above, err := inner.Acquire(t.Context(), lock.Acquire{Locks: lock.One("repo"), Holder: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	part, all := withKey(t, access.Lock, "repo:src"), withKey(t, access.Lock, "repo")
	a := lock.Acquire{Locks: lock.One("repo:src"), Holder: "h"}
	refusals := map[string]error{"batch": locks.Batch(part, []lock.Command{a})[0].Err}
	_, refusals["acquire"] = locks.Acquire(part, a)
	for what, err := range refusals {
		e := new(lock.Error)
		want := "A lock above, which the API key does not cover, is held, waited for, or closed. Retry later, or wait with wait_ms (not in a batch)."
		if !errors.As(err, &e) || e.Code != lock.ErrHeld || e.Detail != want || e.Holder != "(not covered)" ||
			e.Blocked[0].Name != "(not covered)" || e.Blocked[0].Holder != "(not covered)" || e.RetryAfter == 0 {
			t.Errorf("%s: %+v", what, err)
		}
	}
	e := new(lock.Error)
	if _, err := locks.Acquire(all, a); !errors.As(err, &e) || e.Holder != "secret" || e.Blocked[0].Name != "repo" {
		t.Errorf("a key for all is told %+v", err)
	}
	l, err := locks.Lock(part, "repo:src")
	if err != nil || len(l.Above) != 1 || l.Above[0].Name != "(not covered)" || l.Above[0].Holder != "(not covered)" || l.Above[0].Token != above.Token {
		t.Errorf("the lock is %+v, %v", l, err)
	}
	if l, err := locks.Lock(all, "repo:src"); err != nil || l.Above[0].Name != "repo" || l.Above[0].Holder != "secret" {
		t.Errorf("to a key for all the lock is %+v, %v", l, err)
	}
}
