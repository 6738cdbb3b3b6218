package access_test

import (
	"context"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

func (s *spy) Freeze(ctx context.Context, r lock.FreezeRequest) (lock.FreezeStatus, error) {
	s.operator = r.By
	return lock.FreezeStatus{}, s.wait(ctx, "Freeze", 0)
}
func (s *spy) Thaw(ctx context.Context, _ lock.ThawRequest) error {
	return s.wait(ctx, "Thaw", 0)
}
func (s *spy) Frozen(ctx context.Context, _ lock.Scope) (lock.FreezeStatus, error) {
	return lock.FreezeStatus{}, s.wait(ctx, "Frozen", 0)
}
func (s *spy) Freezes(ctx context.Context) ([]lock.Freeze, error) {
	return []lock.Freeze{{Scope: "billing:"}, {Scope: "repo"}}, s.wait(ctx, "Freezes", 0)
}
func (s *spy) SetRule(ctx context.Context, r lock.Rule) (lock.Rule, error) {
	s.operator = r.SetBy
	return r, s.wait(ctx, "SetRule", 0)
}
func (s *spy) RemoveRule(ctx context.Context, _ lock.Scope) error {
	return s.wait(ctx, "RemoveRule", 0)
}
func (s *spy) Rules(ctx context.Context) ([]lock.Rule, error) {
	return []lock.Rule{{Scope: "billing:"}, {Scope: "repo"}}, s.wait(ctx, "Rules", 0)
}

func TestThePolicyIsListedIfTheKeyCoversANameOfTheScope(t *testing.T) {
	t.Parallel()
	locks := access.Guard(newSpy(), access.Limits{})
	for name, c := range map[string]struct {
		prefixes []string
		want     []lock.Scope
	}{
		"no prefixes":         {nil, []lock.Scope{"billing:", "repo"}},
		"all of a scope":      {[]string{"billing"}, []lock.Scope{"billing:"}},
		"a part of a scope":   {[]string{"billing:eu"}, []lock.Scope{"billing:"}},
		"the lock of a scope": {[]string{"repo"}, []lock.Scope{"repo"}},
		"below that lock":     {[]string{"repo:src"}, nil},
		"beside the scopes":   {[]string{"billing2", "repository"}, nil},
	} {
		ctx := withKey(t, access.Read, c.prefixes...)
		freezes, err := locks.Freezes(ctx)
		var scopes []lock.Scope
		for _, f := range freezes {
			scopes = append(scopes, f.Scope)
		}
		if err != nil || !slices.Equal(scopes, c.want) {
			t.Errorf("%s: the freezes are %v, %v", name, scopes, err)
		}
		rules, err := locks.Rules(ctx)
		scopes = nil
		for _, r := range rules {
			scopes = append(scopes, r.Scope)
		}
		if err != nil || !slices.Equal(scopes, c.want) {
			t.Errorf("%s: the rules are %v, %v", name, scopes, err)
		}
	}
}

func TestAnOperatorNeedsAKeyForTheWholeScope(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scope    lock.Scope
		prefixes []string
		allowed  bool
	}{
		"no prefixes":           {"billing:", nil, true},
		"the same names":        {"billing:", []string{"billing"}, true},
		"more names":            {"billing:eu:", []string{"billing"}, true},
		"one lock":              {"billing:eu", []string{"billing:eu"}, true},
		"fewer names":           {"billing:", []string{"billing:eu"}, false},
		"a name beside":         {"billing:us", []string{"billing:eu"}, false},
		"the lock of the group": {"billing", []string{"billing:eu"}, false},
	} {
		for method, ctx := range map[string]context.Context{
			"Freeze": withKey(t, access.Admin, c.prefixes...), "Thaw": withKey(t, access.Admin, c.prefixes...), "Frozen": withKey(t, access.Read, c.prefixes...),
			"SetRule": withKey(t, access.Admin, c.prefixes...), "RemoveRule": withKey(t, access.Admin, c.prefixes...),
		} {
			s := newSpy()
			err := methods[method].call(ctx, access.Guard(s, access.Limits{}), string(c.scope))
			if c.allowed {
				s.allowed(t, method, err)
			} else {
				s.refused(t, name+": "+method, err, lock.ErrNameNotAllowed, string(c.scope), "Use a key that does")
			}
		}
	}
}

func TestTheOperatorIsTheNameOfTheKey(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"Freeze", "SetRule"} {
		s := newSpy()
		if err := methods[method].call(withKey(t, access.Admin), access.Guard(s, access.Limits{}), "billing:"); err != nil || s.operator != "ci" {
			t.Errorf("%s is by %q, %v", method, s.operator, err)
		}
	}
}

// TestTheScopeOfAFreezeIsHidden from a key that covers none of its names: that of a lock above in a tree.
func TestTheScopeOfAFreezeIsHidden(t *testing.T) {
	t.Parallel()
	for scope, want := range map[lock.Scope]lock.Scope{"repo": "(not covered)", "repo:": "repo:", "repo:src:a": "repo:src:a"} {
		frozen := lock.Freeze{Scope: scope, Reason: "r", By: "ops"}
		locks := access.Guard(&lookingSpy{lock.Lock{Name: "repo:src", Frozen: &frozen}, newSpy()}, access.Limits{})
		l, err := locks.Lock(withKey(t, access.Read, "repo:src"), "repo:src")
		if err != nil || l.Frozen.Scope != want || l.Frozen.Reason != "r" || l.Frozen.By != "ops" || frozen.Scope != scope {
			t.Errorf("of %s is shown %+v, %v", scope, l.Frozen, err)
		}
	}
}

// A lookingSpy answers with a lock.
type lookingSpy struct {
	lock lock.Lock
	*spy
}

func (s *lookingSpy) Lock(context.Context, string) (lock.Lock, error) { return s.lock, nil }
