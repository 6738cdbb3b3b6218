package access_test

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// A method is a method of paddock.Service.
type method struct {
	role access.Role // required
	// call calls it for the lock or resource of this name.
	call func(ctx context.Context, s paddock.Service, name string) error
	// wait calls it so that it waits; nil if it never does.
	wait  func(ctx context.Context, s paddock.Service, name string) error
	names nameRule
}

// A nameRule says which prefixes the key of a call needs.
type nameRule int

const (
	coversName nameRule = iota // of the call
	coversAll                  // names, so it must have no prefixes
	coversAny                  // the call has no name
)

const aWhile = 10 * time.Second

// methods are the methods of paddock.Service with their rules. TestEveryMethodHasARule fails for a new method until it is
// added here.
var methods = map[string]method{
	"Lock":  {role: access.Read, call: func(ctx context.Context, s paddock.Service, name string) error { return errOf(s.Lock(ctx, name)) }},
	"Queue": {role: access.Read, call: func(ctx context.Context, s paddock.Service, name string) error { return errOf(s.Queue(ctx, name)) }},
	"Watch": {role: access.Read, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Watch(ctx, paddock.Watch{Name: name}))
	}, wait: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Watch(ctx, paddock.Watch{Name: name, Wait: aWhile}))
	}},
	"Locks": {role: access.Read, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Locks(ctx, paddock.LockQuery{Prefix: name + ":"}))
	}},
	"Events": {role: access.Read, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Events(ctx, paddock.EventQuery{Names: []string{name}}))
	}, wait: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Events(ctx, paddock.EventQuery{Prefix: name + ":", Wait: aWhile}))
	}},
	"VerifyToken": {role: access.Read, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.VerifyToken(ctx, lock.Verify{Name: name}))
	}},
	"ReportStale": {role: access.Lock, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.ReportStale(ctx, lock.ReportStale{Name: name}))
	}},
	"ReadFenced": {role: access.Read, call: func(ctx context.Context, s paddock.Service, name string) error { return errOf(s.ReadFenced(ctx, name)) }},
	"Acquire": {role: access.Lock, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Acquire(ctx, lock.Acquire{Locks: lock.One(name)}))
	}, wait: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Acquire(ctx, lock.Acquire{Locks: lock.One(name), Wait: aWhile}))
	}},
	"Renew": {role: access.Lock, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Renew(ctx, lock.Renew{Locks: []string{name}}))
	}},
	"Release": {role: access.Lock, call: func(ctx context.Context, s paddock.Service, name string) error {
		return s.Release(ctx, lock.Release{Locks: []string{name}})
	}},
	"WriteFenced": {role: access.Lock, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.WriteFenced(ctx, lock.FencedWrite{Key: name, Lock: name}))
	}},
	"Batch": {role: access.Lock, call: func(ctx context.Context, s paddock.Service, name string) error {
		return s.Batch(ctx, []lock.Command{lock.Release{Locks: []string{name}}})[0].Err
	}},
	"OpenSession": {role: access.Lock, names: coversAny, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return errOf(s.OpenSession(ctx, lock.OpenSession{}))
	}},
	"RenewSession": {role: access.Lock, names: coversAny, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return errOf(s.RenewSession(ctx, lock.RenewSession{}))
	}},
	"CloseSession": {role: access.Lock, names: coversAny, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return s.CloseSession(ctx, lock.CloseSession{})
	}},
	"RevokeSession": {role: access.Admin, names: coversAll, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return errOf(s.RevokeSession(ctx, lock.RevokeSession{Ref: 7}))
	}},
	"Session": {role: access.Read, names: coversAny, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return errOf(s.Session(ctx, 7))
	}},
	"Sessions": {role: access.Read, names: coversAll, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return errOf(s.Sessions(ctx, paddock.SessionQuery{}))
	}},
	"DeclareTree": {role: access.Admin, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.DeclareTree(ctx, name))
	}},
	"RemoveTree": {role: access.Admin, call: func(ctx context.Context, s paddock.Service, name string) error {
		return s.RemoveTree(ctx, name)
	}},
	"Trees": {role: access.Read, names: coversAny, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return errOf(s.Trees(ctx))
	}},
	"Freeze": {role: access.Admin, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Freeze(ctx, lock.FreezeRequest{Scope: lock.Scope(name)}))
	}},
	"Thaw": {role: access.Admin, call: func(ctx context.Context, s paddock.Service, name string) error {
		return s.Thaw(ctx, lock.ThawRequest{Scope: lock.Scope(name)})
	}},
	"Frozen": {role: access.Read, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Frozen(ctx, lock.Scope(name)))
	}},
	"Freezes": {role: access.Read, names: coversAny, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return errOf(s.Freezes(ctx))
	}},
	"SetRule": {role: access.Admin, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.SetRule(ctx, lock.Rule{Scope: lock.Scope(name)}))
	}},
	"RemoveRule": {role: access.Admin, call: func(ctx context.Context, s paddock.Service, name string) error {
		return s.RemoveRule(ctx, lock.Scope(name))
	}},
	"Rules": {role: access.Read, names: coversAny, call: func(ctx context.Context, s paddock.Service, _ string) error {
		return errOf(s.Rules(ctx))
	}},
	"Revoke": {role: access.Admin, call: func(ctx context.Context, s paddock.Service, name string) error {
		return errOf(s.Revoke(ctx, lock.Revoke{Name: name}))
	}},
}

func errOf[T any](_ T, err error) error { return err }

// A spy is a paddock.Service that records the names of called methods, and waits as long as a call asks for.
type spy struct {
	operator string                      // of the latest freeze or rule
	caller   atomic.Pointer[lock.Caller] // of the latest call
	paddock.Service
	asked chan string
	guard string // the lock that guards all resources; empty: the one with the resource's name
}

func newSpy() *spy { return &spy{asked: make(chan string, 100)} }

func (s *spy) wait(ctx context.Context, method string, wait time.Duration) error {
	by := lock.CallerFrom(ctx)
	s.caller.Store(&by)
	s.asked <- method
	if wait == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return &lock.Error{Code: lock.ErrUnavailable, Cause: ctx.Err()}
	case <-time.After(wait):
		return nil
	}
}

func (s *spy) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	return lock.Grant{}, s.wait(ctx, "Acquire", a.Wait)
}
func (s *spy) Renew(ctx context.Context, _ lock.Renew) (lock.Grant, error) {
	return lock.Grant{}, s.wait(ctx, "Renew", 0)
}
func (s *spy) Release(ctx context.Context, _ lock.Release) error { return s.wait(ctx, "Release", 0) }
func (s *spy) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	if len(items) == 0 {
		return nil
	}
	return paddock.FailAll(len(items), s.wait(ctx, "Batch", 0))
}
func (s *spy) Revoke(ctx context.Context, _ lock.Revoke) (lock.Lock, error) {
	return lock.Lock{}, s.wait(ctx, "Revoke", 0)
}
func (s *spy) Lock(ctx context.Context, _ string) (lock.Lock, error) {
	return lock.Lock{}, s.wait(ctx, "Lock", 0)
}
func (s *spy) Watch(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
	return lock.Lock{}, s.wait(ctx, "Watch", w.Wait)
}
func (s *spy) Queue(ctx context.Context, _ string) (lock.QueueInfo, error) {
	return lock.QueueInfo{}, s.wait(ctx, "Queue", 0)
}
func (s *spy) Locks(ctx context.Context, _ paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	return paddock.Page[lock.Lock]{}, s.wait(ctx, "Locks", 0)
}
func (s *spy) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	return paddock.Page[lock.Event]{}, s.wait(ctx, "Events", q.Wait)
}
func (s *spy) VerifyToken(ctx context.Context, _ lock.Verify) (lock.Verification, error) {
	return lock.Verification{}, s.wait(ctx, "VerifyToken", 0)
}
func (s *spy) ReportStale(ctx context.Context, _ lock.ReportStale) (bool, error) {
	return true, s.wait(ctx, "ReportStale", 0)
}
func (s *spy) WriteFenced(ctx context.Context, _ lock.FencedWrite) (lock.FencedValue, error) {
	return lock.FencedValue{}, s.wait(ctx, "WriteFenced", 0)
}
func (s *spy) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	return lock.FencedValue{Key: key, Lock: cmp.Or(s.guard, key)}, s.wait(ctx, "ReadFenced", 0)
}

// refused checks that err has this code and these words, and that no method was called.
func (s *spy) refused(t *testing.T, what string, err error, code lock.Code, words ...string) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %v does not contain %q", what, err, w)
		}
	}
	if len(s.asked) > 0 {
		t.Errorf("%s: the spy was called: %s", what, <-s.asked)
	}
}

// allowed checks that the method was called.
func (s *spy) allowed(t *testing.T, name string, err error) {
	t.Helper()
	if err != nil || len(s.asked) != 1 {
		t.Errorf("%s: %v, and %d methods were called", name, err, len(s.asked))
	}
	for len(s.asked) > 0 {
		if asked := <-s.asked; asked != name {
			t.Errorf("%s: %s was called", name, asked)
		}
	}
}

func withKey(t *testing.T, role access.Role, prefixes ...string) context.Context {
	return access.WithKey(t.Context(), access.Key{ID: "a1", Name: "ci", Role: role, Prefixes: prefixes})
}

func TestEveryMethodHasARule(t *testing.T) {
	t.Parallel()
	service := reflect.TypeFor[paddock.Service]()
	for i := range service.NumMethod() {
		name := service.Method(i).Name
		m, ok := methods[name]
		if !ok {
			t.Errorf("%s has no rule: add one to the guard, and to the table here", name)
			continue
		}
		s := newSpy()
		locks := access.Guard(s, access.Limits{})
		s.refused(t, name+" without a key", m.call(t.Context(), locks, "billing:x"), lock.ErrKeyMissing, "Authorization: Bearer")
		s.refused(t, name+" with a key of no role", m.call(withKey(t, 0), locks, "billing:x"), lock.ErrRoleMissing)
		for role := access.Read; role <= access.Admin; role++ {
			err := m.call(withKey(t, role), locks, "billing:x")
			if role < m.role {
				s.refused(t, name+" with the role "+role.String(), err, lock.ErrRoleMissing, `"ci" (a1)`, "has the role "+role.String(), "needs the role "+m.role.String())
				continue
			}
			s.allowed(t, name, err)
		}
	}
	if len(methods) != service.NumMethod() {
		t.Errorf("%d rules for %d methods", len(methods), service.NumMethod())
	}
}

func TestEveryMethodChecksThePrefixes(t *testing.T) {
	t.Parallel()
	for name, m := range methods {
		s := newSpy()
		locks := access.Guard(s, access.Limits{})
		ctx := withKey(t, access.Admin, "billing", "jobs:eu")
		switch m.names {
		case coversAll:
			s.refused(t, name, m.call(ctx, locks, ""), lock.ErrNameNotAllowed, `"ci" (a1)`, "billing, jobs:eu", "Use a key without prefixes.")
			continue
		case coversAny:
			s.allowed(t, name, m.call(ctx, locks, ""))
			continue
		case coversName:
		}
		for _, other := range []string{"other", "billing2", "jobs", "jobs:us", "other:billing"} {
			s.refused(t, name+" of "+other, m.call(ctx, locks, other), lock.ErrNameNotAllowed, `"ci" (a1)`, "billing, jobs:eu")
			if m.wait != nil {
				s.refused(t, name+" of "+other+", waiting", m.wait(ctx, locks, other), lock.ErrNameNotAllowed)
			}
		}
		s.refused(t, name+" of no name", m.call(ctx, locks, "a/b\n"), lock.ErrInvalid)
		for _, mine := range []string{"billing", "billing:x", "jobs:eu", "jobs:eu:x:y"} {
			s.allowed(t, name, m.call(ctx, locks, mine))
		}
	}
}

func TestQueriesNeedACoveredPrefix(t *testing.T) {
	t.Parallel()
	s := newSpy()
	locks := access.Guard(s, access.Limits{})
	ctx := withKey(t, access.Read, "billing", "jobs")
	const hint = "Use prefix=billing: or prefix=jobs:"
	for name, err := range map[string]error{
		"locks without a prefix":                             errOf(locks.Locks(ctx, paddock.LockQuery{})),
		"locks of a holder":                                  errOf(locks.Locks(ctx, paddock.LockQuery{Holder: "me"})),
		"locks with a cursor of another":                     errOf(locks.Locks(ctx, paddock.LockQuery{Cursor: "b3RoZXI"})),
		"locks of a prefix that goes beyond":                 errOf(locks.Locks(ctx, paddock.LockQuery{Prefix: "billing"})),
		"locks of a prefix above":                            errOf(locks.Locks(ctx, paddock.LockQuery{Prefix: "b"})),
		"events without a prefix":                            errOf(locks.Events(ctx, paddock.EventQuery{})),
		"events from now":                                    errOf(locks.Events(ctx, paddock.EventQuery{Cursor: paddock.CursorNow})),
		"events of a prefix that goes beyond, and of a lock": errOf(locks.Events(ctx, paddock.EventQuery{Prefix: "bill", Names: []string{"billing"}})),
	} {
		s.refused(t, name, err, lock.ErrNameNotAllowed, hint)
	}
	s.allowed(t, "Locks", errOf(locks.Locks(ctx, paddock.LockQuery{Prefix: "jobs:", Holder: "me", Cursor: "b3RoZXI"})))
	s.allowed(t, "Events", errOf(locks.Events(ctx, paddock.EventQuery{Prefix: "jobs:eu"})))
	all := withKey(t, access.Read)
	s.allowed(t, "Locks", errOf(locks.Locks(all, paddock.LockQuery{})))
	s.allowed(t, "Events", errOf(locks.Events(all, paddock.EventQuery{})))
}

func TestFencedWriteNeedsCoveredResourceAndLock(t *testing.T) {
	t.Parallel()
	s := newSpy()
	locks := access.Guard(s, access.Limits{})
	ctx := withKey(t, access.Lock, "billing")
	for _, w := range []lock.FencedWrite{
		{Key: "other", Lock: "billing"}, {Key: "billing", Lock: "other"}, {Key: "other", Lock: "other"},
	} {
		s.refused(t, w.Key+" under "+w.Lock, errOf(locks.WriteFenced(ctx, w)), lock.ErrNameNotAllowed, " other")
	}
	s.allowed(t, "WriteFenced", errOf(locks.WriteFenced(ctx, lock.FencedWrite{Key: "billing:a", Lock: "billing:b"})))
}

func TestResourceDoesNotRevealAForeignLock(t *testing.T) {
	t.Parallel()
	s := newSpy()
	s.guard = "secret:plans"
	f, err := access.Guard(s, access.Limits{}).ReadFenced(withKey(t, access.Read, "billing"), "billing:a")
	if !errors.Is(err, lock.ErrNameNotAllowed) || strings.Contains(err.Error(), "secret") || f.Lock != "" {
		t.Errorf("%v, %v", f, err)
	}
	if f, err = access.Guard(s, access.Limits{}).ReadFenced(withKey(t, access.Read), "billing:a"); err != nil || f.Lock != "secret:plans" {
		t.Errorf("%v, %v", f, err)
	}
}
