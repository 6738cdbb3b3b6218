package locktest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

func setCases() cases {
	all := cases{
		"the leases of a set have one id, one token and the same instants": setGrants,
		"the order of the names does not matter":                           setOrder,
		"a set of one is an ordinary lease":                                setOfOne,
		"of a set that is blocked nothing is granted":                      setRefused,
		"shared leases of a set join other readers with their token":       setReaders,
		"a set of readers that all join others has their tokens":           setOfReaders,
		"a set can have permits":                                           setPermits,
		"permits of a set with another capacity are refused":               setCapacity,
		"a granted set can be replayed":                                    setReplay,
		"a lease_id belongs to its set":                                    setInUse,
		"a lease_id of one lock cannot be used for a set":                  setOfUsedID,
		"an ended set is never granted again":                              setReplayEnded,
		"a set is shown at each of its locks":                              setShown,
		"an invalid set is refused":                                        setBounds,
		"a set is not allowed in a batch":                                  setBatch,
	}
	for _, more := range []cases{setWaitCases(), setQueueCases(), setLeaseCases(), setSessionCases(), setRaceCases()} {
		maps.Copy(all, more)
	}
	return all
}

// set returns the locks s.other(n) as the exclusive members of a set.
func (s *fixture) set(numbers ...int) []lock.Member {
	members := make([]lock.Member, len(numbers))
	for i, n := range numbers {
		members[i].Name = s.other(n)
	}
	return members
}

// others returns the names of the locks.
func (s *fixture) others(numbers ...int) []string {
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = s.other(n)
	}
	return names
}

// hold acquires the lock s.other(n) alone.
func (s *fixture) hold(n int, holder string) lock.Grant {
	s.Helper()
	return s.mustAcquire(lock.Acquire{Name: s.other(n), Holder: holder})
}

// mustAcquireSet acquires exclusive leases of the locks s.other(n) together.
func (s *fixture) mustAcquireSet(holder string, numbers ...int) lock.Grant {
	s.Helper()
	return s.mustAcquire(lock.Acquire{Set: s.set(numbers...), Holder: holder})
}

// heldBy returns the holders of all locks of the test in one read: those of a lock in order, "" for a lock that is
// free. Locks that were never used are missing.
func (s *fixture) heldBy() map[string]string {
	s.Helper()
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name + ":"})
	s.must(err)
	held := map[string]string{}
	for _, l := range page.Items {
		var of []string
		for _, h := range l.Leases {
			of = append(of, h.Holder)
		}
		slices.Sort(of)
		held[l.Name] = fmt.Sprint(of)
	}
	return held
}

// expectHeld ends the test unless the locks s.other(n) have these holders at one instant: "a", "a b" for two, "" for
// none.
func (s *fixture) expectHeld(want map[int]string) {
	s.Helper()
	got := s.heldBy()
	for n, holders := range want {
		if have := got[s.other(n)]; have != "["+holders+"]" && (have != "" || holders != "") {
			s.Fatalf("the holders are %v, want %q of lock %d", got, holders, n)
		}
	}
}

// expectSet ends the test unless g is a lease of each of the names, and they belong together.
func (s *fixture) expectSet(g lock.Grant, names []string) {
	s.Helper()
	if !slices.Equal(namesOf(g), slices.Sorted(slices.Values(names))) {
		s.Fatalf("the leases are of %v, want %v", namesOf(g), names)
	}
	if first := g.Members[0]; g.Name != first.Name || g.Token != first.Token || g.ID != first.ID || g.Slot != first.Slot {
		s.Errorf("the grant is %+v, its first lease %+v", g.Lease, first)
	}
	for _, l := range g.Members {
		if l.ID != g.ID || l.Holder != g.Holder || l.TTL != g.TTL || l.Grace != g.Grace || l.Session != g.Session {
			s.Errorf("the leases of a set are %+v and %+v", g.Lease, l)
		}
		if !l.AcquiredAt.Equal(g.AcquiredAt) || !l.ExpiresAt.Equal(g.ExpiresAt) {
			s.Errorf("the leases of a set last from %v to %v and from %v to %v", g.AcquiredAt, g.ExpiresAt, l.AcquiredAt, l.ExpiresAt)
		}
	}
}

func setGrants(s *fixture) {
	var newest lock.Token
	for n := range 3 {
		for range n + 1 {
			newest = s.acquireAndRelease(lock.Acquire{Name: s.other(n)}).Token
		}
	}
	g := s.mustAcquire(lock.Acquire{Set: s.set(2, 0, 1), Holder: "first", MaxHold: 2 * longTTL})
	s.expectSet(g, s.others(0, 1, 2))
	if g.Replayed || g.Token <= newest || g.TTL != longTTL || !isNear(g.ExpiresAt, g.AcquiredAt.Add(longTTL)) {
		s.Errorf("after token %d the set is %+v", newest, g.Lease)
	}
	for i, l := range g.Members {
		if l.Token != g.Token || l.Slot != 0 || l.Mode != lock.Exclusive {
			s.Errorf("lease %d is %+v, want token %d", i, l, g.Token)
		}
		events := s.events(l.Name, 2*(i+1)+1)
		s.expectNoGaps(events)
		if last := events[len(events)-1]; last.Kind != lock.Granted || last.Token != g.Token || !isNear(last.At, g.AcquiredAt) {
			s.Errorf("the grant has the event %+v", last)
		}
	}
	s.must(s.release(g))
	if next := s.hold(1, "second"); next.Token <= g.Token {
		s.Errorf("token %d was granted after %d", next.Token, g.Token)
	}
}

func setOrder(s *fixture) {
	a := lock.Acquire{Set: s.set(3, 1, 2), LeaseID: newID()}
	g := s.mustAcquire(a)
	s.expectSet(g, s.others(1, 2, 3))
	a.Set = s.set(2, 3, 1)
	if again := s.mustAcquire(a); !again.Replayed || again.Token != g.Token || !slices.Equal(namesOf(again), namesOf(g)) {
		s.Errorf("in another order the set is %+v", again)
	}
	_, err := s.locks.Renew(s.ctx, lock.Renew{Set: s.others(3, 1, 2), LeaseID: g.ID})
	s.must(err)
	s.must(s.locks.Release(s.ctx, lock.Release{Set: s.others(2, 1, 3), LeaseID: g.ID}))
	s.expectHeld(map[int]string{1: "", 2: "", 3: ""})
}

func setOfOne(s *fixture) {
	set, alone := lock.Acquire{Set: s.set(1), LeaseID: newID()}, lock.Acquire{Name: s.other(1)}
	alone.LeaseID = set.LeaseID
	g := s.mustAcquire(set)
	if g.Members != nil || g.Name != s.other(1) {
		s.Errorf("the grant is %+v", g)
	}
	if l := s.get(s.other(1)); len(l.Leases) != 1 || l.Leases[0].Set != nil {
		s.Errorf("the lock is %+v", l)
	}
	for _, a := range []lock.Acquire{set, alone} {
		if again := s.mustAcquire(a); !again.Replayed || again.Token != g.Token || again.Members != nil {
			s.Errorf("the replay is %+v", again)
		}
	}
	for _, r := range []lock.Renew{{Name: s.other(1)}, {Set: s.others(1)}} {
		r.LeaseID = g.ID
		if renewed, err := s.locks.Renew(s.ctx, r); err != nil || renewed.Members != nil || renewed.Token != g.Token {
			s.Errorf("the renewed lease is %+v, %v", renewed, err)
		}
	}
	s.must(s.locks.Release(s.ctx, lock.Release{Set: s.others(1), LeaseID: g.ID}))
	s.must(s.release(g))
	s.must(s.locks.Release(s.ctx, lock.Release{Set: s.others(1), LeaseID: s.mustAcquire(lock.Acquire{Name: s.other(1)}).ID}))
}

func setRefused(s *fixture) {
	s.hold(2, "a")
	s.mustAcquire(lock.Acquire{Name: s.other(4), Holder: "b", TTL: longTTL / 2})
	s.enqueue(lock.Acquire{Name: s.other(4), Holder: "waiter"})
	_, err := s.acquire(lock.Acquire{Set: s.set(5, 4, 3, 2, 1), Holder: "set"})
	e := s.expectError(err, lock.ErrHeld)
	s.expectHeld(map[int]string{1: "", 2: "a", 3: "", 4: "b", 5: ""})
	if len(e.Blocked) != 2 || e.Holder != "a" || e.Ahead != 1 || e.KeptFor != 0 {
		s.Fatalf("the refusal is %+v", e)
	}
	for i, want := range []lock.BlockedLock{
		{Name: s.other(2), Holder: "a", RetryAfter: longTTL}, {Name: s.other(4), Holder: "b", Ahead: 1, RetryAfter: longTTL / 2},
	} {
		b := e.Blocked[i]
		if b.Name != want.Name || b.Holder != want.Holder || b.Ahead != want.Ahead || b.RetryAfter <= 0 || b.RetryAfter > want.RetryAfter {
			s.Errorf("the refusal names %+v, want %+v", b, want)
		}
	}
	if e.RetryAfter < e.Blocked[0].RetryAfter || e.RetryAfter < e.Blocked[1].RetryAfter {
		s.Errorf("a retry after %v is refused", e.RetryAfter)
	}
	for _, n := range []int{1, 3, 5} {
		s.events(s.other(n), 0)
	}
	s.mustAcquireSet("other", 1, 3, 5)
}
