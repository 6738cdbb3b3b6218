package locktest

import (
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

func setReaders(s *fixture) {
	reader := s.mustAcquire(lock.Acquire{Name: s.other(2), Holder: "reader", Mode: lock.Shared})
	set := lock.Acquire{Set: s.set(1, 2), Holder: "set"}
	set.Set[1].Mode = lock.Shared
	g := s.mustAcquire(set)
	s.expectSet(g, s.others(1, 2))
	writes, reads := g.Members[0], g.Members[1]
	if reads.Token != reader.Token || reads.Mode != lock.Shared || reads.Slot == reader.Slot || reads.Slot < 1 {
		s.Errorf("beside %+v the set reads with %+v", reader.Lease, reads)
	}
	if writes.Token <= reader.Token || writes.Mode != lock.Exclusive || writes.Slot != 0 {
		s.Errorf("the set writes with %+v", writes)
	}
	_, err := s.acquire(lock.Acquire{Name: s.other(2), Holder: "writer"})
	s.expectError(err, lock.ErrHeld)
	s.must(s.release(reader))
	if next := s.mustAcquire(lock.Acquire{Name: s.other(2), Holder: "next", Mode: lock.Shared}); next.Token != reads.Token {
		s.Errorf("the next reader has token %d, want %d", next.Token, reads.Token)
	}
	writer := s.enqueue(lock.Acquire{Name: s.other(2), Holder: "writer"})
	set.Set, set.LeaseID = set.Set[1:], newID()
	set.Set = append(set.Set, s.set(3)...)
	_, err = s.acquire(set)
	if e := s.expectError(err, lock.ErrHeld); len(e.Blocked) != 1 || e.Blocked[0].Name != s.other(2) || e.Blocked[0].Ahead != 1 {
		s.Errorf("behind a writer the set is refused with %+v", e)
	}
	writer.cancelAndWait()
}

func setOfReaders(s *fixture) {
	a := s.mustAcquire(lock.Acquire{Name: s.other(1), Holder: "a", Mode: lock.Shared})
	b := s.mustAcquire(lock.Acquire{Name: s.other(2), Holder: "b", Mode: lock.Shared})
	set := lock.Acquire{Set: s.set(1, 2), Holder: "set"}
	set.Set[0].Mode, set.Set[1].Mode = lock.Shared, lock.Shared
	g := s.mustAcquire(set)
	if g.Members[0].Token != a.Token || g.Members[1].Token != b.Token || a.Token == b.Token {
		s.Errorf("beside tokens %d and %d the set has %+v", a.Token, b.Token, g.Members)
	}
	if l := s.get(s.other(1)); l.Token != a.Token {
		s.Errorf("the newest token is %d, want %d", l.Token, a.Token)
	}
	for _, g := range []lock.Grant{a, g, b} {
		s.must(s.release(g))
	}
	g = s.mustAcquire(set)
	if g.Members[0].Token != g.Members[1].Token || g.Token <= max(a.Token, b.Token) {
		s.Errorf("of free locks the set has %+v", g.Members)
	}
}

func setPermits(s *fixture) {
	permit := lock.Member{Name: s.other(1), Mode: lock.Permit, Capacity: 2}
	set := func(n int) []lock.Member { return append(s.set(n), permit) }
	a := s.mustAcquire(lock.Acquire{Set: set(2), Holder: "a"})
	b := s.mustAcquire(lock.Acquire{Set: set(3), Holder: "b"})
	if p, q := a.Members[0], b.Members[0]; p.Mode != lock.Permit || p.Slot == q.Slot || p.Token >= q.Token {
		s.Errorf("the permits are %+v and %+v", p, q)
	}
	_, err := s.acquire(lock.Acquire{Set: set(4), Holder: "c"})
	if e := s.expectError(err, lock.ErrHeld); len(e.Blocked) != 1 || e.Blocked[0].Name != s.other(1) {
		s.Errorf("the refusal is %+v", e)
	}
	s.expectHeld(map[int]string{1: "a b", 2: "a", 3: "b", 4: ""})
	c := s.enqueue(lock.Acquire{Set: set(4), Holder: "c"})
	s.must(s.release(a))
	g := c.mustBeGranted()
	if g.Members[0].Slot != a.Members[0].Slot || g.Members[0].Token <= b.Token || g.Members[1].Token != g.Members[0].Token {
		s.Errorf("after %+v the set is %+v", a.Members[0], g.Members)
	}
	again := s.mustAcquire(lock.Acquire{Set: set(4), Holder: "c", LeaseID: g.ID})
	if !again.Replayed || again.Members[0].Token != g.Members[0].Token || again.Members[0].Slot != g.Members[0].Slot {
		s.Errorf("the replay is %+v", again)
	}
}

func setCapacity(s *fixture) {
	s.mustAcquire(lock.Acquire{Name: s.other(2), Mode: lock.Permit, Capacity: 2})
	set := append(s.set(1), lock.Member{Name: s.other(2), Mode: lock.Permit, Capacity: 3})
	_, err := s.acquire(lock.Acquire{Set: set, Holder: "second"})
	e := s.expectError(err, lock.ErrCapacityMismatch)
	if e.Capacity != 2 || !strings.Contains(e.Detail, s.other(2)) {
		s.Errorf("the refusal is %+v", e)
	}
	s.expectHeld(map[int]string{1: "", 2: "first"})
}

func setReplay(s *fixture) {
	a := lock.Acquire{Set: s.set(1, 2), LeaseID: newID(), Metadata: []byte(`{"a":1}`), Wait: lock.MaxWait}
	g := s.mustAcquire(a)
	s.enqueue(lock.Acquire{Name: s.other(2), Holder: "waiter"})
	for _, wait := range []bool{false, true} {
		if a.Wait = 0; wait {
			a.Wait = lock.MaxWait
		}
		again := s.mustAcquire(a)
		s.expectSet(again, s.others(1, 2))
		if !again.Replayed || again.Token != g.Token || !isNear(again.ExpiresAt, g.ExpiresAt) {
			s.Errorf("the set %+v was replayed as %+v", g, again)
		}
		for i := range g.Members {
			if again.Members[i].Token != g.Members[i].Token || !sameJSON(again.Members[i].Metadata, a.Metadata) {
				s.Errorf("the lease %+v was replayed as %+v", g.Members[i], again.Members[i])
			}
		}
	}
	if l := s.get(s.other(1)); l.Revision != 1 {
		s.Errorf("the lock changed %d times, want once", l.Revision)
	}
}

// otherRequests are requests that have the LeaseID of the set {1, 2} of the holder "first", and are not that one.
func (s *fixture) otherRequests(id lock.LeaseID) []lock.Acquire {
	reads := s.set(1, 2)
	reads[1].Mode = lock.Shared
	all := []lock.Acquire{
		{Set: s.set(1, 3)}, {Set: s.set(0, 2)}, {Set: s.set(1, 2, 3)}, {Set: s.set(1)}, {Name: s.other(2)}, {Set: reads},
		{Set: s.set(1, 2), Holder: "second"},
	}
	for i := range all {
		all[i].LeaseID = id
	}
	return all
}

func (s *fixture) expectInUse(requests []lock.Acquire) {
	s.Helper()
	for i, a := range requests {
		_, err := s.acquire(a)
		s.expectError(err, lock.ErrLeaseIDInUse)
		if a.Wait = lock.MaxWait; i%2 == 0 {
			_, err = s.acquire(a)
			s.expectError(err, lock.ErrLeaseIDInUse)
		}
	}
}

func setInUse(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2)
	s.expectInUse(s.otherRequests(g.ID))
	s.expectHeld(map[int]string{0: "", 1: "first", 2: "first", 3: ""})
	s.must(s.release(g))
	s.hold(2, "holder")
	w := s.enqueue(lock.Acquire{Set: s.set(1, 2)})
	s.expectInUse(s.otherRequests(w.request.LeaseID))
	if q := s.queue(s.other(3)).Waiters; len(q) != 0 {
		s.Errorf("a refused request has the place %+v", q)
	}
	w.cancelAndWait()
}

func setOfUsedID(s *fixture) {
	g := s.hold(2, "first")
	s.expectInUse([]lock.Acquire{{Set: s.set(1, 2), LeaseID: g.ID}, {Set: s.set(3, 2, 1), LeaseID: g.ID}})
	w := s.enqueue(lock.Acquire{Name: s.other(2), Holder: "second"})
	s.expectInUse([]lock.Acquire{{Set: s.set(1, 2), LeaseID: w.request.LeaseID, Holder: "second"}})
	s.expectHeld(map[int]string{1: "", 2: "first", 3: ""})
	w.cancelAndWait()
}

func setReplayEnded(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2)
	s.must(s.release(g))
	_, err := s.acquire(lock.Acquire{Set: s.set(1, 2), LeaseID: g.ID})
	if e := s.expectLost(err, lock.Released); e.Token != g.Token {
		s.Errorf("the refusal names token %d, want %d", e.Token, g.Token)
	}
	_, err = s.acquire(lock.Acquire{Set: s.set(2, 3), LeaseID: g.ID})
	s.expectLost(err, lock.Released)
	expired := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), TTL: shortTTL})
	s.awaitState(s.other(2), lock.Free)
	_, err = s.acquire(lock.Acquire{Set: s.set(1, 2), LeaseID: expired.ID})
	s.expectLost(err, lock.Expired)
	s.expectHeld(map[int]string{1: "", 2: "", 3: ""})
}

func setShown(s *fixture) {
	names := s.others(1, 2)
	g := s.mustAcquireSet("first", 2, 1)
	w := s.enqueue(lock.Acquire{Set: s.set(3, 2), Holder: "second"})
	for _, name := range names {
		l := s.get(name)
		if len(l.Leases) != 1 || !slices.Equal(l.Leases[0].Set, names) || l.Leases[0].Token != g.Token || l.State != lock.Held {
			s.Errorf("the lock is %+v", l)
		}
	}
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name + ":", Holder: "first"})
	s.must(err)
	if len(page.Items) != 2 || !slices.Equal(page.Items[1].Leases[0].Set, names) {
		s.Errorf("the list is %+v", page.Items)
	}
	for n, at := range map[int]string{2: "", 3: s.other(2)} { // lock 3 is free, and the set is the first to get it
		q := s.queue(s.other(n)).Waiters
		if len(q) != 1 || !slices.Equal(q[0].Set, s.others(2, 3)) || q[0].BlockedBy != lock.BlockedByHolders ||
			q[0].BlockedAt != at || len(q[0].Leases) != 1 || q[0].Leases[0].Name != at || q[0].Ahead != 0 || !q[0].Attached {
			s.Errorf("the queue of lock %d is %+v", n, q)
		} else if !slices.Equal(q[0].Leases[0].Set, names) {
			s.Errorf("the lease in the way is %+v", q[0].Leases[0])
		}
	}
	s.expectNoSecret([]any{s.get(s.other(2)), s.queue(s.other(2)), s.queue(s.other(3))}, g.ID, w.request.LeaseID)
	s.must(s.release(g))
	w.mustBeGranted()
	s.hold(1, "alone")
	if l := s.get(s.other(1)); l.Leases[0].Set != nil {
		s.Errorf("a lease that was acquired alone has the set %q", l.Leases[0].Set)
	}
}
