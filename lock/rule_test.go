package lock_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestRules(t *testing.T) {
	t.Parallel()
	tell(t, story{
		"a longer TTL is refused":                `rule jobs: ttl=5s; acquire 1 ttl=6s -> !invalid_request; acquire 1 ttl=5s`,
		"a smaller grace is refused":             `rule jobs: grace=2s; acquire 1 grace=1s -> !invalid_request; acquire 1 grace=2s`,
		"a grace that is left out is the least":  `rule jobs: grace=2s; acquire 1; after 11s; acquire 2 -> !lock_held retry=1s state=grace`,
		"a renewal with a longer TTL is refused": `rule jobs: ttl=10s; acquire 1; renew 1 ttl=11s -> !invalid_request; renew 1 ttl=9s`,
		"all renewals together end at the max hold": `
			rule jobs: hold=15s; acquire 1; after 9s
			renew 1 -> expires=6s; after 6s
			renew 1 -> !lease_lost; acquire 2`,
		"the lesser max hold counts":   `rule jobs: hold=15s; acquire 1 hold=3s -> expires=3s; after 3s; acquire 2 hold=1h; after 9s; renew 2 -> expires=6s`,
		"another scope does not apply": `rule jobs:night ttl=1s; acquire 1; release 1; rule other: ttl=1s; acquire 2`,
		"a lease from before the rule is renewed within it, and keeps its end": `
			acquire 1 ttl=1m; rule jobs: ttl=5s hold=30s
			renew 1 -> ttl=5s expires=1m; after 50s
			renew 1 -> expires=10s; after 10s
			renew 1 -> !lease_lost`,
		"a waiter from before the rule is granted within it": `
			acquire 1; wait 2; rule jobs: ttl=5s hold=20s grace=3s
			release 1; claim 2 -> ttl=5s expires=5s; after 7s
			acquire 3 ttl=5s -> !lock_held retry=1s`,
		"the TTL of a session is bounded":   `open 1; rule jobs: ttl=5s; acquire 2 in=1 -> !invalid_request; rule jobs: ttl=10s; acquire 2 in=1`,
		"the grace of a session is bounded": `open 1; rule jobs: grace=3s; acquire 2 in=1 -> !invalid_request; rule jobs: grace=2s; acquire 2 in=1`,
		"permits without a capacity need a rule": `
			acquire 1 permit=0 -> !invalid_request
			rule jobs: capacity=2; acquire 1 permit=0 -> capacity=2
			acquire 2 permit=2; acquire 3 permit=0 -> !lock_held
			acquire 4 permit=3 -> !capacity_mismatch capacity=2`,
		"a greater capacity lets waiters in at once": `
			rule jobs: capacity=1; acquire 1 permit=0; wait 2 permit=0; wait 3 permit=0; wait 4 permit=0
			rule jobs: capacity=3; sweep -> granted granted wakes=2,3 [1 2 3 | 4] capacity=3`,
		"a smaller capacity ousts no lease, and nothing is granted until enough are free": `
			rule jobs: capacity=3; acquire 1 permit=0; acquire 2 permit=0; acquire 3 permit=0; wait 4 permit=0
			rule jobs: capacity=1; sweep -> quiet [1 2 3 | 4]
			release 1 -> released; release 2 -> released [3 | 4]; release 3 -> released granted [4 |]`,
		"a call that is repeated after the capacity has changed finds its lease": `
			rule jobs: capacity=2; acquire 1 permit=0; rule jobs: capacity=3
			acquire 1 permit=0 -> replayed=true`,
		"a call from before the rule that is repeated finds its lease or its place": `
			acquire 1 permit=8 ttl=1m; rule jobs: capacity=3 ttl=5s grace=2s
			acquire 1 permit=8 ttl=1m -> replayed=true; acquire 2 permit=8 ttl=5s grace=2s -> !capacity_mismatch`,
		"a call from before the rule that is repeated finds its place": `
			acquire 1 permit=8; wait 2 ttl=1m; wait 3 permit=8; rule jobs: capacity=3 ttl=10s
			wait 2 ttl=1m -> quiet [1 | 2 3]; wait 3 permit=8 -> quiet [1 | 2 3]; acquire 4 ttl=1m -> !invalid_request
			release 1; claim 2 -> ttl=10s`,
		"a call that left the capacity to a rule finds its lease without it": `
			rule jobs: capacity=2; acquire 1 permit=0; rule none
			acquire 1 permit=0 -> replayed=true`,
		"without the rule callers have the capacity again": `
			rule jobs: capacity=2; acquire 1 permit=0; rule none
			acquire 2 permit=0 -> !invalid_request
			acquire 2 permit=2`,
		"a rule for other modes says nothing of them": `rule jobs: capacity=2; acquire 1 -> capacity=0; acquire 2 shared -> !lock_held`,
	})
}

// TestTheLongestScopeApplies, and no other.
func TestTheLongestScopeApplies(t *testing.T) {
	t.Parallel()
	p := &lock.Policy{Rules: map[lock.Scope]lock.Rule{}}
	for _, s := range []lock.Scope{"a:", "a:b:", "a:b:c", "b", "c::"} {
		p.Rules[s] = lock.Rule{Scope: s}
	}
	for name, want := range map[string]lock.Scope{
		"a": "", "a:": "a:", "a:x": "a:", "a:b": "a:", "a:b:x": "a:b:", "a:b:c": "a:b:c", "a:b:c:d": "a:b:", "a:b:cd": "a:b:",
		"b": "b", "b:x": "", "c:x": "", "c::x": "c::", "ab": "",
	} {
		got := lock.Scope("")
		if r := p.RuleOf(name); r != nil {
			got = r.Scope
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if r := (*lock.Policy)(nil).RuleOf("a"); r != nil {
		t.Errorf("without a policy: %+v", r)
	}
}

// TestTheRefusalNamesTheRule by its scope, and the field of the request.
func TestTheRefusalNamesTheRule(t *testing.T) {
	t.Parallel()
	p := &lock.Policy{Rules: map[lock.Scope]lock.Rule{"jobs:": {Scope: "jobs:", MaxTTL: time.Second, MinGrace: time.Second, Capacity: 2}}}
	for field, a := range map[string]lock.Acquire{
		"ttl_ms":   {TTL: time.Minute, Locks: lock.One("jobs:a")},
		"grace_ms": {TTL: time.Second, Grace: time.Millisecond, Locks: lock.One("jobs:a")},
		"permits":  {TTL: time.Second, Locks: members(lock.Member{Name: "jobs:a", Mode: lock.Permit, Permits: 3})},
	} {
		a.Holder = "h"
		a, err := a.Resolve(anyBounds())
		if err != nil {
			t.Fatal(err)
		}
		err = refusalOf(t, a, p)
		e := new(lock.Error)
		if errors.As(err, &e); e.Code != lock.ErrInvalid || e.Field != field || !strings.Contains(e.Detail, "the rule for jobs:") {
			t.Errorf("%s: %v", field, err)
		}
	}
	a, err := (lock.Acquire{Holder: "h", Locks: lock.One("jobs:a")}).Resolve(anyBounds())
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := a.In(p)
	if in, ok := cmd.(lock.Acquire); err != nil || !ok || in.TTL != time.Second || in.Grace != time.Second {
		t.Errorf("a request that leaves all out is decided as %+v, %v", cmd, err)
	}
}

// TestTheRefusalNamesTheSession whose times are outside of the rule: the acquire in it gives none.
func TestTheRefusalNamesTheSession(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		rule lock.Rule
		says []string
	}{
		"its TTL":   {lock.Rule{MaxTTL: 5 * time.Second}, []string{"whose TTL is 10000 ms", "at most 5000", "ttl_ms 5000 or less"}},
		"its grace": {lock.Rule{MinGrace: 3 * time.Second}, []string{"whose grace is 2000 ms", "no less than 3000", "grace_ms 3000 or more"}},
	} {
		c.rule.Scope = "jobs:"
		a, err := (lock.Acquire{Holder: "h", Locks: lock.One("jobs:a"), SessionID: sessionID}).Resolve(anyBounds())
		if err != nil {
			t.Fatal(err)
		}
		p := &lock.Policy{Rules: map[lock.Scope]lock.Rule{"jobs:": c.rule}}
		ref := a.SessionID.Ref()
		s := lock.Session{ID: a.SessionID, Holder: "h", TTL: 10 * time.Second, Grace: 2 * time.Second, OpenedAt: t0, ExpiresAt: t0.Add(10 * time.Second)}
		cmd, err := a.In(p)
		if err != nil {
			t.Fatal(err)
		}
		err = cmd.Apply(lock.View{Now: t0, Policy: p, Locks: []lock.Record{{Name: "jobs:a"}}, Sessions: map[lock.SessionRef]lock.Session{ref: s}}).Err
		e := new(lock.Error)
		if errors.As(err, &e); e.Field != "session_id" {
			t.Errorf("%s: %v", what, err)
		}
		for _, want := range append(c.says, ref.String(), "the rule for jobs:", "leave session_id out") {
			if !strings.Contains(e.Detail, want) {
				t.Errorf("%s: %q does not say %q", what, e.Detail, want)
			}
		}
	}
}

func TestRuleBounds(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		rule  lock.Rule
		field string
	}{
		"all":           {rule: lock.Rule{Scope: "a:", MaxTTL: lock.MaxTTL, MaxHold: lock.MaxHold, MinGrace: lock.MaxGrace, Capacity: lock.MaxHolders, MaxLeases: 1}},
		"nothing":       {lock.Rule{Scope: "a:"}, "scope"},
		"no scope":      {lock.Rule{MaxTTL: time.Second}, "scope"},
		"a short TTL":   {lock.Rule{Scope: "a:", MaxTTL: 1}, "max_ttl_ms"},
		"a long hold":   {lock.Rule{Scope: "a:", MaxHold: lock.MaxHold + 1}, "max_hold_ms"},
		"a long grace":  {lock.Rule{Scope: "a:", MinGrace: lock.MaxGrace + 1}, "min_grace_ms"},
		"many permits":  {lock.Rule{Scope: "a:", Capacity: lock.MaxHolders + 1}, "capacity"},
		"no permits":    {lock.Rule{Scope: "a:", Capacity: -1}, "capacity"},
		"minus a lease": {lock.Rule{Scope: "a:", MaxLeases: -1}, "max_leases"},
	} {
		_, err := c.rule.Resolve()
		e := new(lock.Error)
		if errors.As(err, &e); e.Field != c.field {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestAKeyThatHasTooManyLeases is refused a new one, and finds those that it has, which tell whose they are.
func TestAKeyThatHasTooManyLeases(t *testing.T) {
	t.Parallel()
	m := newModel(t)
	m.policy.Rules = map[lock.Scope]lock.Rule{"jobs:": {Scope: "jobs:", MaxLeases: 1}}
	m.by.Name = "team"
	a := acquire(1)
	if l := leaseOf(m.must(a)); l.Key != "team" {
		t.Errorf("the lease is of the key %q", l.Key)
	}
	r := m.policy.Rules["jobs:"]
	a.KeyFull = &r
	m.must(a)
	a.LeaseID = id(2)
	if e := m.refused(a, lock.ErrTooManyLeases); !strings.Contains(e.Detail, "1 leases by the rule for jobs:") {
		t.Error(e)
	}
	m.policy.Rules = nil
	m.must(release(1))
	if l := leaseOf(m.must(acquire(3))); l.Key != "" {
		t.Errorf("without a rule the lease is of the key %q", l.Key)
	}
}

// refusalOf returns the refusal of the call under the policy, for locks that nobody has asked for before.
func refusalOf(t *testing.T, a lock.Acquire, p *lock.Policy) error {
	t.Helper()
	cmd, err := a.In(p)
	if err != nil {
		t.Fatal(err)
	}
	v := lock.View{Now: time.Unix(1, 0), Policy: p}
	for _, name := range cmd.Names() {
		v.Locks = append(v.Locks, lock.Record{Name: name})
	}
	return cmd.Apply(v).Err
}
