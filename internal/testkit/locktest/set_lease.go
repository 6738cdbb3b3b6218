package locktest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/paddock-lock/paddock/lock"
)

func setLeaseCases() cases {
	return cases{
		"a renewal moves the end of all leases of a set":                  setRenew,
		"other names than those of a set are refused":                     setOtherNames,
		"other names than those of a waiting set are refused":             setOtherNamesWaiting,
		"a lease of a set is refused alone":                               setAlone,
		"a lease that was acquired alone is refused in a set":             setNeverAcquired,
		"a release ends all leases of a set":                              setRelease,
		"a set expires as a whole":                                        setExpires,
		"max_hold ends a set as a whole":                                  setMaxHold,
		"the revocation of one lease ends all of its set":                 setRevoked,
		"a revoked set blocks others at each lock during its grace":       setRevokedInGrace,
		"a revocation of readers ends the sets of all":                    setRevokedReaders,
		"a revocation with a slot ends one set":                           setRevokedSlot,
		"metadata of a set is shown at each lock":                         setMetadata,
		"fenced writes are accepted at each lock of a set":                setFence,
		"the end of a set is an event of each lock":                       setEvents,
		"a waiter of one lock is granted it when a set is released":       setServesWaiters,
		"a set that was renewed during its grace stays held as a whole":   setRenewedInGrace,
		"a set granted from the queue has its whole TTL at each lock":     setBegins,
		"a member of an ended set is refused alone as any ended lease is": setEndedAlone,
	}
}

func setRenew(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2, 3)
	r, err := s.renew(g, 2*longTTL)
	s.must(err)
	s.expectSet(r, s.others(1, 2, 3))
	if r.TTL != 2*longTTL || r.Token != g.Token || !isNear(r.AcquiredAt, g.AcquiredAt) || r.ExpiresAt.Before(g.ExpiresAt.Add(longTTL)) {
		s.Errorf("the set %+v was renewed as %+v", g.Lease, r.Lease)
	}
	for _, name := range s.others(1, 2, 3) {
		if l := s.get(name); len(l.Leases) != 1 || !isNear(l.Leases[0].ExpiresAt, r.ExpiresAt) || l.Revision != 1 {
			s.Errorf("the lock is %+v, want a lease until %v", l, r.ExpiresAt)
		}
	}
	again := s.mustAcquire(lock.Acquire{Set: s.set(1, 2, 3), LeaseID: g.ID})
	if !again.Replayed || !isNear(again.ExpiresAt, r.ExpiresAt) {
		s.Errorf("the replay is %+v", again.Lease)
	}
}

// expectNotTheSet ends the test unless each call with the names is refused because they are not those of one acquire.
func (s *fixture) expectNotTheSet(id lock.LeaseID, names ...string) {
	s.Helper()
	_, err := s.locks.Renew(s.ctx, lock.Renew{Set: names, LeaseID: id})
	s.expectInvalid(names, err, "names")
	s.expectInvalid(names, s.locks.Release(s.ctx, lock.Release{Set: names, LeaseID: id}), "names")
}

func setOtherNames(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2, 3)
	for _, numbers := range [][]int{{1, 2}, {3, 1}, {1, 2, 3, 4}, {0, 1, 2, 3}, {1, 2, 4}, {4, 3}} {
		s.expectNotTheSet(g.ID, s.others(numbers...)...)
	}
	s.expectHeld(map[int]string{1: "first", 2: "first", 3: "first"})
	if l := s.get(s.other(2)); l.Revision != 1 || !isNear(l.Leases[0].ExpiresAt, g.ExpiresAt) {
		s.Errorf("a refused call changed the lock: %+v", l)
	}
}

func setOtherNamesWaiting(s *fixture) {
	s.hold(2, "holder")
	w := s.enqueue(lock.Acquire{Set: s.set(1, 2, 3), Holder: "set"})
	for _, numbers := range [][]int{{1, 2}, {1, 2, 3, 4}, {3, 4}} {
		s.expectNotTheSet(w.request.LeaseID, s.others(numbers...)...)
	}
	s.expectInSet(w.request.LeaseID, s.others(1, 2, 3))
	_, err := s.locks.Renew(s.ctx, lock.Renew{Set: s.others(1, 2, 3), LeaseID: w.request.LeaseID})
	s.expectLost(err, 0)
	if _, attached := s.places(1, 2, 3); !attached {
		s.Error("the set does not wait any more")
	}
}

// expectInSet ends the test unless a call with one of the names is refused because of the others.
func (s *fixture) expectInSet(id lock.LeaseID, names []string) {
	s.Helper()
	for _, name := range names {
		_, err := s.locks.Renew(s.ctx, lock.Renew{Name: name, LeaseID: id})
		_, inSetOfOne := s.locks.Renew(s.ctx, lock.Renew{Set: []string{name}, LeaseID: id})
		released := s.locks.Release(s.ctx, lock.Release{Name: name, LeaseID: id})
		for _, err := range []error{err, inSetOfOne, released} {
			if e := s.expectError(err, lock.ErrLeaseInSet); !slices.Equal(e.Set, names) {
				s.Errorf("the refusal names %q, want %q", e.Set, names)
			}
		}
	}
	results := s.locks.Batch(s.ctx, []lock.Command{
		lock.Renew{Name: names[0], LeaseID: id}, lock.Release{Name: names[1], LeaseID: id},
	})
	for _, r := range results {
		s.expectError(r.Err, lock.ErrLeaseInSet)
	}
}

func setAlone(s *fixture) {
	g := s.mustAcquireSet("first", 2, 1)
	s.expectInSet(g.ID, s.others(1, 2))
	_, err := s.renew(g, 0)
	s.must(err)
	s.expectHeld(map[int]string{1: "first", 2: "first"})
}

func setNeverAcquired(s *fixture) {
	g := s.hold(1, "first")
	s.expectNotTheSet(g.ID, s.others(1, 2)...)
	s.expectNotTheSet(g.ID, s.others(3, 1)...)
	_, err := s.renew(g, 0)
	s.must(err)
	_, err = s.locks.Renew(s.ctx, lock.Renew{Set: s.others(1, 2), LeaseID: newID()})
	s.expectLost(err, 0)
	s.expectLost(s.locks.Release(s.ctx, lock.Release{Set: s.others(1, 2), LeaseID: newID()}), 0)
	s.expectHeld(map[int]string{1: "first", 2: ""})
}

func setRelease(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2, 3)
	s.must(s.release(g))
	s.expectHeld(map[int]string{1: "", 2: "", 3: ""})
	s.must(s.release(g))
	_, err := s.renew(g, 0)
	if e := s.expectLost(err, lock.Released); e.Token != g.Token {
		s.Errorf("the refusal names token %d, want %d", e.Token, g.Token)
	}
	next := s.mustAcquireSet("second", 3, 2, 1)
	s.must(s.release(g))
	if next.Token <= g.Token {
		s.Errorf("token %d was granted after %d", next.Token, g.Token)
	}
	s.expectHeld(map[int]string{1: "second", 2: "second", 3: "second"})
}

func setExpires(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), TTL: shortTTL})
	s.awaitState(s.other(2), lock.Free)
	s.expectHeld(map[int]string{1: "", 2: ""})
	s.hold(2, "second") // records the end at one lock, the end at the other is not recorded yet
	_, err := s.renew(g, longTTL)
	s.expectLost(err, lock.Expired)
	s.expectLost(s.release(g), lock.Expired)
	s.expectHeld(map[int]string{1: "", 2: "second"})
}

func setMaxHold(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), MaxHold: 3 * shortTTL})
	for _, l := range g.Members {
		if !isNear(l.ExpiresAt, l.AcquiredAt.Add(3*shortTTL)) || l.MaxHold != 3*shortTTL {
			s.Errorf("the lease is %+v", l)
		}
	}
	s.awaitState(s.other(1), lock.Free)
	_, err := s.renew(g, longTTL)
	s.expectLost(err, lock.Expired)
	s.mustAcquireSet("second", 1, 2)
}

func (s *fixture) revokeOther(n int, r lock.Revoke) lock.Lock {
	s.Helper()
	r.Name, r.Reason = s.other(n), testReason
	l, err := s.locks.Revoke(s.ctx, r)
	s.must(err)
	if l.Name != s.other(n) {
		s.Errorf("the revocation answers with %+v", l)
	}
	return l
}

func setRevoked(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2, 3)
	next := s.enqueue(lock.Acquire{Set: s.set(3, 1), Holder: "next", Wait: lock.MaxWait})
	alone := s.enqueue(lock.Acquire{Name: s.other(2), Holder: "alone", Wait: lock.MaxWait})
	l := s.revokeOther(2, lock.Revoke{Token: g.Token, AcquiredAt: s.get(s.other(2)).Leases[0].AcquiredAt})
	if len(l.Leases) != 1 || l.Leases[0].Holder != "alone" || l.Waiters != 0 {
		s.Errorf("the revocation answers with %+v", l)
	}
	if took := next.mustBeWoken(); took.Token <= g.Token || took.Token == alone.mustBeWoken().Token {
		s.Errorf("after token %d the next set has %d", g.Token, took.Token)
	}
	s.expectHeld(map[int]string{1: "next", 2: "alone", 3: "next"})
	_, err := s.renew(g, 0)
	for _, err := range []error{err, s.release(g)} {
		if e := s.expectLost(err, lock.Revoked); e.Reason != testReason || e.Token != g.Token {
			s.Errorf("the refusal is %+v", e)
		}
	}
	_, err = s.acquire(lock.Acquire{Set: s.set(1, 2, 3), LeaseID: g.ID})
	s.expectLost(err, lock.Revoked)
}

func setRevokedInGrace(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), Grace: lock.MaxGrace})
	next := s.enqueue(lock.Acquire{Name: s.other(2), Holder: "next", Wait: lock.MaxWait})
	if l := s.revokeOther(1, lock.Revoke{Token: g.Token}); l.State != lock.InGrace || !l.Leases[0].Revoked {
		s.Errorf("the revocation answers with %+v", l)
	}
	if l := s.get(s.other(2)); l.State != lock.InGrace || len(l.Leases) != 1 || !l.Leases[0].Revoked {
		s.Errorf("the other lock is %+v", l)
	}
	_, err := s.acquire(lock.Acquire{Set: s.set(1, 3), Holder: "second"})
	s.expectError(err, lock.ErrHeld)
	_, err = s.renew(g, 0)
	s.expectLost(err, lock.Revoked)
	s.revokeOther(1, lock.Revoke{Token: g.Token}) // again
	s.revokeOther(1, lock.Revoke{Token: g.Token, SkipGrace: true})
	next.mustBeWoken()
	s.expectHeld(map[int]string{1: "", 2: "next"})
}

// readers acquires sets of readers that share the lock s.other(1), and a reader of that alone.
func (s *fixture) readers() (sets []lock.Grant, alone lock.Grant) {
	s.Helper()
	for n := 2; n <= 3; n++ {
		set := append(s.set(n), lock.Member{Name: s.other(1), Mode: lock.Shared})
		sets = append(sets, s.mustAcquire(lock.Acquire{Set: set, Holder: fmt.Sprint("set ", n)}))
	}
	alone = s.mustAcquire(lock.Acquire{Name: s.other(1), Mode: lock.Shared, Holder: "alone"})
	return sets, alone
}

func setRevokedReaders(s *fixture) {
	sets, alone := s.readers()
	if l := s.revokeOther(1, lock.Revoke{Token: alone.Token}); l.State != lock.Free {
		s.Errorf("the revocation answers with %+v", l)
	}
	s.expectHeld(map[int]string{1: "", 2: "", 3: ""})
	for _, g := range append(sets, alone) {
		_, err := s.renew(g, 0)
		s.expectLost(err, lock.Revoked)
	}
}

func setRevokedSlot(s *fixture) {
	sets, alone := s.readers()
	s.revokeOther(1, lock.Revoke{Token: alone.Token, Slot: &sets[0].Members[0].Slot})
	s.expectHeld(map[int]string{1: "alone set 3", 2: "", 3: "set 3"})
	_, err := s.renew(sets[0], 0)
	s.expectLost(err, lock.Revoked)
	for _, g := range []lock.Grant{sets[1], alone} {
		_, err := s.renew(g, 0)
		s.must(err)
	}
}

func setMetadata(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), Metadata: []byte(`{"at":"a"}`)})
	expect := func(want string) {
		s.Helper()
		for _, name := range namesOf(g) {
			if l := s.get(name); !sameJSON(l.Leases[0].Metadata, json.RawMessage(want)) {
				s.Errorf("%s shows %s, want %s", name, l.Leases[0].Metadata, want)
			}
		}
	}
	expect(`{"at":"a"}`)
	r, err := s.locks.Renew(s.ctx, lock.Renew{Set: namesOf(g), LeaseID: g.ID, Metadata: []byte(`{"at":"b"}`)})
	s.must(err)
	for _, l := range r.Members {
		if !sameJSON(l.Metadata, json.RawMessage(`{"at":"b"}`)) {
			s.Errorf("the lease has the metadata %s", l.Metadata)
		}
	}
	expect(`{"at":"b"}`)
	_, err = s.renew(g, 0)
	s.must(err)
	expect(`{"at":"b"}`)
	for _, name := range namesOf(g) {
		if events := s.events(name, 2); events[1].Kind != lock.MetadataUpdated || events[1].Token != g.Token {
			s.Errorf("the update has the event %+v", events[1])
		}
	}
}

func setFence(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2)
	write := func(name string, token lock.Token) error {
		_, err := s.locks.WriteFenced(s.ctx, lock.FencedWrite{Key: name, Lock: name, Token: token, Value: json.RawMessage(`1`)})
		return err
	}
	for _, name := range namesOf(g) {
		s.must(write(name, g.Token))
		v, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: name, Token: g.Token})
		if err != nil || v.Status != lock.Current {
			s.Errorf("the token is %+v at %s, %v", v, name, err)
		}
	}
	s.must(s.release(g))
	s.hold(2, "second")
	s.must(write(s.other(1), g.Token))
	s.expectError(write(s.other(2), g.Token), lock.ErrStaleToken)
}

func setEvents(s *fixture) {
	s.must(s.release(s.mustAcquireSet("first", 1, 2)))
	s.mustAcquire(lock.Acquire{Set: s.set(1, 2), TTL: shortTTL})
	s.awaitState(s.other(1), lock.Free)
	s.revokeOther(2, lock.Revoke{Token: s.mustAcquireSet("first", 1, 2).Token})
	want := []lock.Kind{lock.Granted, lock.Released, lock.Granted, lock.Expired, lock.Granted, lock.Revoked}
	of := map[string][]lock.Event{}
	for _, name := range s.others(1, 2) {
		of[name] = s.events(name, len(want))
		s.expectNoGaps(of[name])
		if got := kinds(of[name]); !slices.Equal(got, want) {
			s.Errorf("the history is %v, want %v", got, want)
		}
	}
	for i := range want {
		a, b := of[s.other(1)][i], of[s.other(2)][i]
		if a.Token != b.Token || a.Reason != b.Reason || a.Kind != lock.Expired && !a.At.Equal(b.At) {
			s.Errorf("at the two locks of a set the events are %+v and %+v", a, b)
		}
	}
}

func setServesWaiters(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2, 3)
	var calls []*waitingCall
	for n := 1; n <= 3; n++ {
		calls = append(calls, s.enqueue(lock.Acquire{Name: s.other(n), Holder: fmt.Sprint(n), Wait: lock.MaxWait}))
	}
	s.must(s.release(g))
	s.expectHeld(map[int]string{1: "1", 2: "2", 3: "3"})
	tokens := map[lock.Token]bool{g.Token: true}
	for _, c := range calls {
		tokens[c.mustBeWoken().Token] = true
	}
	if len(tokens) != 4 {
		s.Errorf("the tokens are %v", tokens)
	}
}

func setRenewedInGrace(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Set: s.set(1, 2), TTL: shortTTL, Grace: lock.MaxGrace})
	s.awaitState(s.other(2), lock.InGrace)
	w := s.enqueue(lock.Acquire{Name: s.other(2), Holder: "waiter"})
	r, err := s.renew(g, longTTL)
	s.must(err)
	for _, name := range namesOf(g) {
		if l := s.get(name); l.State != lock.Held || !isNear(l.Leases[0].ExpiresAt, r.ExpiresAt) {
			s.Errorf("the lock is %+v", l)
		}
	}
	s.must(s.release(g))
	w.mustBeGranted()
}

func setBegins(s *fixture) {
	held := s.hold(2, "holder")
	w := s.enqueue(lock.Acquire{Set: s.set(1, 2), Holder: "set", TTL: shortTTL, Grace: lock.MaxGrace})
	s.eventually("the set has waited for longer than its TTL", func() bool { return s.queue(s.other(1)).Waiters[0].Waited > shortTTL })
	s.must(s.release(held))
	g := w.mustBeGranted()
	s.expectSet(g, s.others(1, 2))
	if !isNear(g.ExpiresAt, g.AcquiredAt.Add(shortTTL)) || g.AcquiredAt.Before(held.AcquiredAt.Add(shortTTL)) {
		s.Errorf("the set lasts from %v to %v", g.AcquiredAt, g.ExpiresAt)
	}
	for _, name := range namesOf(g) {
		if l := s.get(name).Leases; len(l) != 1 || !isNear(l[0].ExpiresAt, g.ExpiresAt) || !isNear(l[0].AcquiredAt, g.AcquiredAt) {
			s.Errorf("the lease of %s is %+v", name, l)
		}
	}
}

func setEndedAlone(s *fixture) {
	g := s.mustAcquireSet("first", 1, 2)
	s.must(s.release(g))
	_, err := s.locks.Renew(s.ctx, lock.Renew{Name: s.other(1), LeaseID: g.ID})
	s.expectLost(err, lock.Released)
	s.must(s.locks.Release(s.ctx, lock.Release{Name: s.other(2), LeaseID: g.ID}))
	_, err = s.acquire(lock.Acquire{Name: s.other(2), LeaseID: g.ID})
	s.expectLost(err, lock.Released)
	s.expectHeld(map[int]string{1: "", 2: ""})
}
