package locktest

import (
	"errors"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func freezeCases() cases {
	return cases{
		"nothing is granted in a frozen scope":                    frozenScope,
		"a freeze counts the leases that are left":                frozenDrains,
		"a prefix that was frozen is not listed as a lock":        frozenPrefix,
		"waiters are served in their order when a freeze ends":    frozenThaws,
		"a freeze ends by itself":                                 frozenEnds,
		"a freeze needs a scope and a reason, and an end in time": frozenBounds,
		"a freeze of a tree drains the locks above":               frozenTree,
		"a freeze of a lock in a tree drains the locks below":     frozenAbove,
	}
}

// freeze freezes the scope. It tries again while the database is busy.
func (s *fixture) freeze(scope lock.Scope, d time.Duration) (status lock.FreezeStatus) {
	s.Helper()
	var err error
	s.eventually("a scope is frozen", func() bool {
		status, err = s.locks().Freeze(s.ctx, lock.FreezeRequest{Scope: scope, Reason: "maintenance", For: d})
		return !errors.Is(err, lock.ErrUnavailable)
	})
	s.must(err)
	return status
}

func (s *fixture) thaw(scope lock.Scope) {
	s.Helper()
	var err error
	s.eventually("a freeze is ended", func() bool {
		err = s.locks().Thaw(s.ctx, lock.ThawRequest{Scope: scope})
		return !errors.Is(err, lock.ErrUnavailable)
	})
	if s.ctx.Err() == nil {
		s.must(err)
	}
}

// frozen returns the freeze of the scope, false if there is none.
func (s *fixture) frozen(scope lock.Scope) (lock.FreezeStatus, bool) {
	s.Helper()
	status, err := s.locks().Frozen(s.ctx, scope)
	if errors.Is(err, lock.ErrNotFound) {
		return status, false
	}
	s.must(err)
	return status, true
}

// all returns the scope of all locks of the test but the one with the fixture's name.
func (s *fixture) all() lock.Scope { return lock.Scope(s.name + ":") }

// frozenPrefix freezes a prefix, and then uses it as a lock: a name may end with a colon.
func frozenPrefix(s *fixture) {
	listed := func() bool {
		page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: string(s.all())})
		s.must(err)
		return slices.ContainsFunc(page.Items, func(l lock.Lock) bool { return l.Name == string(s.all()) })
	}
	s.freeze(s.all(), time.Hour)
	if listed() {
		s.Error("a frozen prefix is listed")
	}
	s.thaw(s.all())
	if listed() {
		s.Error("a thawed prefix is listed")
	}
	s.mustAcquire(lock.Acquire{Locks: lock.One(string(s.all()))})
	if !listed() {
		s.Error("a lock whose name ends with a colon is not listed")
	}
}

func frozenScope(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1))})
	status := s.freeze(s.all(), time.Hour)
	if status.Reason != "maintenance" || status.FrozenAt.IsZero() || !isNear(status.Until, status.FrozenAt.Add(time.Hour)) || status.Leases != 1 {
		s.Errorf("frozen: %+v", status)
	}
	for _, name := range []string{s.other(1), s.other(2)} {
		e := s.expectError(errOf(s.acquire(lock.Acquire{Locks: lock.One(name)})), lock.ErrFrozen)
		if e.Reason != "maintenance" || e.RetryAfter <= 0 || e.RetryAfter > time.Hour || !isNear(e.FrozenUntil, status.Until) {
			s.Errorf("refused with %+v", e)
		}
	}
	s.mustAcquire(lock.Acquire{}) // outside of the scope
	if _, err := s.renew(held, 0); err != nil {
		s.Errorf("a lease is not renewed: %v", err)
	}
	s.eventually("the lock shows the freeze", func() bool { // within half a second
		l := s.get(s.other(2))
		return l.Frozen != nil && l.Frozen.Reason == "maintenance" && l.Frozen.Scope == s.all()
	})
	list, err := s.locks().Freezes(s.ctx)
	s.must(err)
	if !slices.ContainsFunc(list, func(f lock.Freeze) bool {
		return f.Scope == s.all() && f.Reason == "maintenance" && isNear(f.Until, status.Until)
	}) {
		s.Errorf("the freezes are %+v", list)
	}
	s.must(s.release(held))
	s.expectError(errOf(s.acquire(lock.Acquire{Locks: lock.One(s.other(1))})), lock.ErrFrozen)
	s.thaw(s.all())
	s.thaw(s.all())
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1))})
	if _, found := s.frozen(s.all()); found {
		s.Error("the freeze is there after its end")
	}
	if got := kinds(s.events(string(s.all()), 2)); !slices.Equal(got, []lock.Kind{lock.Frozen, lock.Thawed}) {
		s.Errorf("the events are %v", got)
	}
}

func frozenDrains(s *fixture) {
	first := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1))})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(2)), TTL: shortTTL})
	s.mustAcquire(lock.Acquire{})
	s.freeze(s.all(), 0)
	s.eventually("the short lease has ended", func() bool { status, _ := s.frozen(s.all()); return status.Leases == 1 })
	s.must(s.release(first))
	if status, found := s.frozen(s.all()); !found || status.Leases != 0 || !status.Until.IsZero() {
		s.Errorf("after the last release: %+v", status)
	}
}

func frozenThaws(s *fixture) {
	name := s.other(1)
	held := s.mustAcquire(lock.Acquire{Locks: lock.One(name)})
	s.freeze(lock.Scope(name), 0)
	var waiters []*waitingCall
	for i := range 3 {
		waiters = append(waiters, s.startAcquire(lock.Acquire{Locks: lock.One(name), Holder: string('a' + rune(i))}))
		s.eventually("it waits", func() bool { return s.get(name).Waiters == i+1 })
	}
	s.must(s.release(held))
	if l := s.get(name); l.Waiters != 3 || len(l.Leases) != 0 {
		s.Errorf("the frozen lock is %+v", l)
	}
	s.thaw(lock.Scope(name))
	last := held.Token
	for _, w := range waiters {
		g := w.mustBeGranted()
		if g.Token <= last {
			s.Errorf("%s has token %d after %d", g.Holder, g.Token, last)
		}
		last = g.Token
		s.must(s.release(g))
	}
}

func frozenEnds(s *fixture) {
	name := s.other(1)
	status := s.freeze(s.all(), mediumTTL)
	g := s.startAcquire(lock.Acquire{Locks: lock.One(name)}).mustBeGranted()
	if g.AcquiredAt.Before(status.Until) {
		s.Errorf("granted at %v, in the freeze %+v", g.AcquiredAt, status)
	}
	if _, found := s.frozen(s.all()); found {
		s.Error("the freeze is there after its end")
	}
	s.thaw(s.all())
	if got := kinds(s.events(string(s.all()), 1)); !slices.Equal(got, []lock.Kind{lock.Frozen}) {
		s.Errorf("the events are %v", got)
	}
}

func frozenBounds(s *fixture) {
	for field, r := range map[string]lock.FreezeRequest{
		"reason": {Scope: s.all()},
		"for_ms": {Scope: s.all(), Reason: "r", For: lock.MaxFreeze + time.Millisecond},
	} {
		if e := s.expectError(errOf(s.locks().Freeze(s.ctx, r)), lock.ErrInvalid); e.Field != field {
			s.Errorf("the field is %s, want %s", e.Field, field)
		}
	}
	s.expectError(errOf(s.locks().Frozen(s.ctx, s.all())), lock.ErrNotFound)
}

func frozenTree(s *fixture) {
	s.tree()
	above := s.holdIn("a", lock.Exclusive)
	if status := s.freeze(lock.Scope(s.in("a:b:")), 0); status.Leases != 1 {
		s.Errorf("a lease above is not counted: %+v", status)
	}
	s.must(s.release(above))
	for path, frozen := range map[string]bool{"a": true, "a:b": true, "a:b:c": true, "a:c": false} {
		g, err := s.acquire(lock.Acquire{Locks: lock.One(s.in(path))})
		if errors.Is(err, lock.ErrFrozen) != frozen || !frozen && err != nil {
			s.Errorf("%s: %v", path, err)
		}
		if err == nil {
			s.must(s.release(g))
		}
	}
	if status, _ := s.frozen(lock.Scope(s.in("a:b:"))); status.Leases != 0 {
		s.Errorf("drained: %+v", status)
	}
	above = s.holdIn("d:e", lock.Exclusive)
	s.freeze(lock.Scope(s.in("d")), 0)
	s.eventually("a lock below a frozen one shows the freeze", func() bool { // within half a second
		l := s.get(s.in("d:e"))
		return l.Frozen != nil && l.Frozen.Scope == lock.Scope(s.in("d"))
	})
	s.must(s.release(above))
}

func frozenAbove(s *fixture) {
	s.tree()
	below, beside := s.holdIn("a:b:c", lock.Exclusive), s.holdIn("a:d", lock.Exclusive)
	if status := s.freeze(lock.Scope(s.in("a:b")), 0); status.Leases != 1 {
		s.Errorf("a lease below is not counted, or one beside it is: %+v", status)
	}
	s.expectError(errOf(s.acquire(lock.Acquire{Locks: lock.One(s.in("a:b:e"))})), lock.ErrFrozen)
	s.must(s.release(below))
	if status, _ := s.frozen(lock.Scope(s.in("a:b"))); status.Leases != 0 {
		s.Errorf("drained: %+v", status)
	}
	s.must(s.release(beside))
}
