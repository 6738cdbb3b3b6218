package locktest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func setCases() cases {
	return cases{
		"the leases of a set have one id, one token and the same instants": setLeases,
		"each lease of a set has its own mode, token and slot":             setModes,
		"a set can have MaxSetSize locks":                                  setLargest,
		"of a set that is blocked nothing is granted":                      setRefused,
		"a set is shown at each of its locks":                              setShown,
		"a lease of a set is refused alone, and other names with it":       setInParts,
		"a set expires as a whole":                                         setExpires,
		"the revocation of one lease ends all of its set":                  setRevoked,
		"a set is never seen in part":                                      setNeverInPart,
	}
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
	return s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(n)), Holder: holder})
}

// mustAcquireSet acquires exclusive leases of the locks s.other(n) together.
func (s *fixture) mustAcquireSet(holder string, numbers ...int) lock.Grant {
	s.Helper()
	return s.mustAcquire(lock.Acquire{Locks: s.set(numbers...), Holder: holder})
}

// expectHeld ends the test unless the locks s.other(n) have these holders in one read: "a", "a b" for two, "" for none.
func (s *fixture) expectHeld(want map[int]string) {
	s.Helper()
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name + ":"})
	s.must(err)
	got := map[string]string{}
	for _, l := range page.Items {
		got[l.Name] = fmt.Sprint(holdersOf(l))
	}
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
	if first := g.Leases[0]; g.Name != first.Name || g.Token != first.Token || g.ID != first.ID || g.Slot != first.Slot {
		s.Errorf("the grant is %+v, its first lease %+v", g.Lease, first)
	}
	for _, l := range g.Leases {
		if l.ID != g.ID || l.Holder != g.Holder || l.TTL != g.TTL || l.Grace != g.Grace || l.Session != g.Session ||
			!l.AcquiredAt.Equal(g.AcquiredAt) || !l.ExpiresAt.Equal(g.ExpiresAt) || string(l.Metadata) != string(g.Metadata) {
			s.Errorf("the leases of a set are %+v and %+v", g.Lease, l)
		}
	}
}

// setLeases acquires, repeats, renews and releases a set, with its names in another order each time.
func setLeases(s *fixture) {
	for range 3 {
		s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.other(2))})
	}
	newest := s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.other(1))}).Token
	a := lock.Acquire{Locks: s.set(2, 0, 1), LeaseID: newID(), Grace: time.Second, MaxHold: 3 * longTTL, Metadata: []byte(`{"at":"a"}`)}
	g := s.mustAcquire(a)
	s.expectSet(g, s.others(0, 1, 2))
	if g.Replayed || g.Token <= newest || !isNear(g.ExpiresAt, g.AcquiredAt.Add(longTTL)) || g.MaxHold != a.MaxHold {
		s.Errorf("after token %d the set is %+v", newest, g.Lease)
	}
	for i, l := range g.Leases {
		if l.Token != g.Token || l.Slot != 0 || l.Mode != lock.Exclusive {
			s.Errorf("lease %d is %+v, want token %d", i, l, g.Token)
		}
	}
	a.Locks = s.set(0, 2, 1)
	again := s.mustAcquire(a)
	if s.expectSet(again, s.others(0, 1, 2)); !again.Replayed || again.Token != g.Token || !isNear(again.ExpiresAt, g.ExpiresAt) {
		s.Errorf("the set %+v was replayed as %+v", g, again)
	}
	r, err := s.locks().Renew(s.ctx, lock.Renew{Locks: s.others(1, 2, 0), LeaseID: g.ID, TTL: 2 * longTTL, Metadata: []byte(`{"at":"b"}`)})
	s.must(err)
	s.expectSet(r, s.others(0, 1, 2))
	if r.TTL != 2*longTTL || r.Token != g.Token || !isNear(r.AcquiredAt, g.AcquiredAt) || r.ExpiresAt.Before(g.ExpiresAt.Add(longTTL-time.Millisecond)) {
		s.Errorf("the set %+v was renewed as %+v", g.Lease, r.Lease)
	}
	for _, name := range namesOf(g) {
		if l := s.get(name); len(l.Leases) != 1 || !isNear(l.Leases[0].ExpiresAt, r.ExpiresAt) || !sameJSON(l.Leases[0].Metadata, json.RawMessage(`{"at":"b"}`)) {
			s.Errorf("the lock is %+v, want a lease until %v", l, r.ExpiresAt)
		}
	}
	for range 2 {
		s.must(s.locks().Release(s.ctx, lock.Release{Locks: s.others(2, 1, 0), LeaseID: g.ID}))
	}
	s.expectHeld(map[int]string{0: "", 1: "", 2: ""})
	if e := s.expectLost(errOf(s.renew(g, 0)), lock.Released); e.Token != g.Token {
		s.Errorf("the refusal names token %d, want %d", e.Token, g.Token)
	}
	s.expectEventsOfSet(g)
	if next := s.hold(1, "second"); next.Token <= g.Token {
		s.Errorf("token %d was granted after %d", next.Token, g.Token)
	}
}

// expectEventsOfSet ends the test unless the last three events of each lock are those of the set.
func (s *fixture) expectEventsOfSet(g lock.Grant) {
	s.Helper()
	var first []lock.Event
	for i, before := range []int{0, 2, 6} {
		events := s.events(s.other(i), before+3)
		s.expectNoGaps(events)
		last := events[before:]
		if got := kinds(last); !slices.Equal(got, []lock.Kind{lock.Granted, lock.MetadataUpdated, lock.Released}) {
			s.Errorf("the history of lock %d is %v", i, got)
		}
		if first == nil {
			first = last
		}
		for j, e := range last {
			if e.Token != g.Token || !e.At.Equal(first[j].At) {
				s.Errorf("at the locks of a set the events are %+v and %+v", first[j], e)
			}
		}
	}
}

// setModes: of the set {1, 2, 3} another client reads lock 2 already, and the locks 2 and 3 have room for more.
func setModes(s *fixture) {
	reader := s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: s.other(2), Mode: lock.Shared}}, Holder: "reader"})
	set := append(s.set(1), lock.Member{Name: s.other(2), Mode: lock.Shared}, lock.Member{Name: s.other(3), Mode: lock.Permit, Capacity: 2})
	g := s.mustAcquire(lock.Acquire{Locks: set})
	s.expectSet(g, s.others(1, 2, 3))
	writes, reads, permit := g.Leases[0], g.Leases[1], g.Leases[2]
	if writes.Mode != lock.Exclusive || writes.Token <= reader.Token || writes.Slot != 0 {
		s.Errorf("the set writes with %+v", writes)
	}
	if reads.Mode != lock.Shared || reads.Token != reader.Token || reads.Slot == reader.Slot || reads.Slot < 1 {
		s.Errorf("beside %+v the set reads with %+v", reader.Lease, reads)
	}
	if permit.Mode != lock.Permit || permit.Token != writes.Token || permit.Slot < 1 || s.get(s.other(3)).Capacity != 2 {
		s.Errorf("the set has the permit %+v", permit)
	}
	again := s.mustAcquire(lock.Acquire{Locks: set, LeaseID: g.ID})
	for i, l := range again.Leases {
		if was := g.Leases[i]; l.Mode != was.Mode || l.Token != was.Token || l.Slot != was.Slot {
			s.Errorf("the lease %+v was replayed as %+v", was, l)
		}
	}
}

func setLargest(s *fixture) {
	var most []int
	for n := range lock.MaxSetSize {
		most = append(most, n)
	}
	g := s.mustAcquireSet("first", most...)
	s.expectSet(g, s.others(most...))
	s.must(s.release(g))
}

func setRefused(s *fixture) {
	s.hold(2, "a")
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(4)), Holder: "b", TTL: longTTL / 2})
	s.enqueue(lock.Acquire{Locks: lock.One(s.other(4)), Holder: "waiter"})
	e := s.expectError(errOf(s.acquire(lock.Acquire{Locks: s.set(5, 4, 3, 2, 1), Holder: "set"})), lock.ErrHeld)
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
}

func setShown(s *fixture) {
	names := s.others(1, 2)
	g := s.mustAcquireSet("first", 2, 1)
	w := s.enqueue(lock.Acquire{Locks: s.set(3, 2), Holder: "second"})
	for _, name := range names {
		l := s.get(name)
		if len(l.Leases) != 1 || !slices.Equal(l.Leases[0].Set, names) || l.Leases[0].Token != g.Token || l.State != lock.Held {
			s.Errorf("the lock is %+v", l)
		}
	}
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name + ":", Holder: "first"})
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
	if e := s.expectError(errOf(s.acquire(lock.Acquire{Locks: lock.One(s.other(3)), Holder: "a try"})), lock.ErrHeld); e.Holder != "" || e.Ahead != 1 {
		s.Errorf("a try at a free lock of the waiting set is refused with %+v", e)
	}
	s.expectNoSecret([]any{s.get(s.other(2)), s.queue(s.other(2)), s.queue(s.other(3))}, g.ID, w.request.LeaseID)
}

func setInParts(s *fixture) {
	g := s.mustAcquireSet("first", 2, 1)
	results := s.locks().Batch(s.ctx, []lock.Command{
		lock.Renew{Locks: []string{s.other(1)}, LeaseID: g.ID}, lock.Release{Locks: []string{s.other(2)}, LeaseID: g.ID},
	})
	alone := lock.Renew{Locks: []string{s.other(1)}, LeaseID: g.ID}
	inSet := lock.Renew{Locks: s.others(1), LeaseID: g.ID}
	for _, err := range []error{
		results[0].Err, results[1].Err, errOf(s.locks().Renew(s.ctx, alone)), errOf(s.locks().Renew(s.ctx, inSet)),
		s.locks().Release(s.ctx, lock.Release{Locks: []string{s.other(2)}, LeaseID: g.ID}),
	} {
		if e := s.expectError(err, lock.ErrLeaseInSet); !slices.Equal(e.Set, s.others(1, 2)) {
			s.Errorf("the refusal names %q, want %q", e.Set, s.others(1, 2))
		}
	}
	other := s.others(1, 2, 3)
	s.expectInvalid(other, errOf(s.locks().Renew(s.ctx, lock.Renew{Locks: other, LeaseID: g.ID})), "names")
	s.expectInvalid(other, s.locks().Release(s.ctx, lock.Release{Locks: other, LeaseID: g.ID}), "names")
	s.expectLost(s.locks().Release(s.ctx, lock.Release{Locks: s.others(1, 2), LeaseID: newID()}), 0)
	s.expectHeld(map[int]string{1: "first", 2: "first"})
}

func setExpires(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Locks: s.set(1, 2), TTL: shortTTL})
	s.awaitState(s.other(2), lock.Free)
	s.expectHeld(map[int]string{1: "", 2: ""})
	s.hold(2, "second") // records the end at one lock, the end at the other is not recorded yet
	s.expectLost(errOf(s.renew(g, longTTL)), lock.Expired)
	s.expectLost(s.release(g), lock.Expired)
	s.expectLost(errOf(s.acquire(lock.Acquire{Locks: s.set(1, 2), LeaseID: g.ID})), lock.Expired)
	s.expectHeld(map[int]string{1: "", 2: "second"})
}

func setRevoked(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2, 3)
	next := s.enqueue(lock.Acquire{Locks: s.set(3, 1), Holder: "next", Wait: lock.MaxWait})
	alone := s.enqueue(lock.Acquire{Locks: lock.One(s.other(2)), Holder: "alone", Wait: lock.MaxWait})
	l, err := s.locks().Revoke(s.ctx, lock.Revoke{Name: s.other(2), Token: g.Token, Reason: testReason})
	s.must(err)
	if l.Name != s.other(2) || len(l.Leases) != 1 || l.Leases[0].Holder != "alone" || l.Waiters != 0 {
		s.Errorf("the revocation answers with %+v", l)
	}
	if took := next.mustBeWoken(); took.Token <= g.Token || took.Token == alone.mustBeWoken().Token {
		s.Errorf("after token %d the next set has %d", g.Token, took.Token)
	}
	s.expectHeld(map[int]string{1: "next", 2: "alone", 3: "next"})
	for _, err := range []error{errOf(s.renew(g, 0)), s.release(g)} {
		if e := s.expectLost(err, lock.Revoked); e.Reason != testReason || e.Token != g.Token {
			s.Errorf("the refusal is %+v", e)
		}
	}
}

// setNeverInPart reads while a set is granted, waits and is released: all of its locks in one read.
func setNeverInPart(s *fixture) {
	var done atomic.Bool
	s.runWorkers(3, func(ctx context.Context, i int) error {
		if i == 0 {
			defer done.Store(true)
		}
		for range 20 {
			if i == 2 {
				return s.expectWhole(&done)
			}
			a := s.complete(lock.Acquire{Locks: s.set(1, 2, 3), Holder: fmt.Sprint("set ", i)})
			g, err := s.acquirePatiently(ctx, a)
			if err != nil {
				return err
			}
			if err := s.release(g); err != nil {
				return err
			}
		}
		return nil
	})
}

// expectWhole reads until done, and returns an error if the locks have different holders.
func (s *fixture) expectWhole(done *atomic.Bool) error {
	for !done.Load() {
		page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name + ":"})
		if err != nil {
			return err
		}
		held := map[lock.Token]int{}
		for _, l := range page.Items {
			for _, h := range l.Leases {
				held[h.Token]++
			}
		}
		for token, n := range held {
			if n != 3 {
				return fmt.Errorf("the set with token %d is held at %d of 3 locks: %+v", token, n, page.Items)
			}
		}
	}
	return nil
}
