package locktest

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func sessionCases() cases {
	return cases{
		"a session keeps its leases alive":                 sessionKeepsLeases,
		"a renewal of a session's lease does not move it":  sessionLeaseRenewal,
		"the leases of a set of a session have one end":    sessionOneEnd,
		"a waiter of a session is granted its set":         sessionWaits,
		"a closed session has no lease and no place":       sessionCloses,
		"an expired session has no lease and no place":     sessionExpires,
		"a revoked session has no lease and no place":      sessionRevoked,
		"a revoked session blocks others during its grace": sessionRevokedInGrace,
		"a session counts its leases that are revoked":     sessionCounts,
		"opening a session again finds it":                 sessionReplays,
		"an ended session cannot be used":                  sessionLost,
		"a session that never was cannot be used":          sessionUnknown,
		"a session shows what it keeps alive":              sessionShows,
		"sessions are listed by holder":                    sessionLists,
		"a batch grants leases of a session":               sessionBatch,
		"a heartbeat and a takeover never both succeed":    sessionRace,
	}
}

// openSession opens a session with a new ID. Its holder is "first" and its TTL longTTL unless o says otherwise.
func (s *fixture) openSession(o lock.OpenSession) lock.SessionGrant {
	s.Helper()
	if o.ID == (lock.SessionID{}) {
		o.ID = lock.SessionID(uuid.New())
	}
	o.Holder, o.TTL = cmp.Or(o.Holder, "first"), cmp.Or(o.TTL, longTTL)
	g, err := s.locks().OpenSession(s.ctx, o)
	s.must(err)
	return g
}

func (s *fixture) expectSessionLost(err error, how lock.Kind) {
	s.Helper()
	e := s.expectError(err, lock.ErrSessionLost)
	if e.Ended != how || e.EndedAt.IsZero() != (how == 0) {
		s.Errorf("the session ended by %v at %v, want %v", e.Ended, e.EndedAt, how)
	}
}

// endsWith reports whether a lease that expires at this instant ends with its session, which was opened or renewed
// after began. Over several cells the session is told the earliest of its ends, and the lease has that of its cell.
func endsWith(at time.Time, g lock.SessionGrant, began time.Time) bool {
	later := at.Sub(g.ExpiresAt)
	return later >= -time.Millisecond && later <= time.Since(began)+time.Millisecond
}

func sessionKeepsLeases(s *fixture) {
	began := time.Now()
	g := s.openSession(lock.OpenSession{TTL: 4 * shortTTL, Grace: lock.MaxGrace})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	b := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1)), SessionID: g.ID})
	if !endsWith(a.ExpiresAt, g, began) || !endsWith(b.ExpiresAt, g, began) || a.TTL != g.TTL || a.Grace != g.Grace {
		s.Errorf("the session is %+v, and its leases are %+v and %+v", g, a, b)
	}
	for range 3 {
		time.Sleep(3 * shortTTL)
		renewed, err := s.locks().RenewSession(s.ctx, lock.RenewSession{ID: g.ID})
		s.must(err)
		if renewed.RevokedLeases != 0 || !renewed.ExpiresAt.After(g.ExpiresAt) {
			s.Errorf("the renewed session is %+v", renewed)
		}
	}
	began = time.Now()
	renewed, err := s.locks().RenewSession(s.ctx, lock.RenewSession{ID: g.ID, TTL: longTTL})
	s.must(err)
	for _, name := range []string{s.name, s.other(1)} {
		l := s.get(name)
		if l.State != lock.Held || len(l.Leases) != 1 || !endsWith(l.Leases[0].ExpiresAt, renewed, began) || l.Revision != 1 {
			s.Errorf("%s is %+v, want a lease until %v", name, l, renewed.ExpiresAt)
		}
	}
}

func sessionLeaseRenewal(s *fixture) {
	began := time.Now()
	g := s.openSession(lock.OpenSession{})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	s.expectInvalid("a TTL", errOf(s.renew(a, longTTL)), "ttl_ms")
	r, err := s.locks().Renew(s.ctx, lock.Renew{Locks: []string{a.Name}, LeaseID: a.ID, Metadata: []byte(`{"step":2}`)})
	s.must(err)
	if !endsWith(r.ExpiresAt, g, began) || r.Token != a.Token || string(r.Metadata) != `{"step":2}` {
		s.Errorf("the renewed lease is %+v", r)
	}
	s.must(s.release(a))
	if info, err := s.locks().Session(s.ctx, g.ID.Ref()); err != nil || info.Leases != 0 {
		s.Errorf("after the release the session is %+v, %v", info, err)
	}
}

// sessionOneEnd lets the service read one lock of the set after the heartbeat of the session, and the others before it.
func sessionOneEnd(s *fixture) {
	session := s.openSession(lock.OpenSession{})
	g := s.mustAcquire(lock.Acquire{Locks: s.set(1, 2, 3), SessionID: session.ID})
	began := time.Now()
	renewed, err := s.locks().RenewSession(s.ctx, lock.RenewSession{ID: session.ID, TTL: 2 * longTTL})
	s.must(err)
	s.expectError(errOf(s.acquire(lock.Acquire{Locks: lock.One(s.other(2)), Holder: "second"})), lock.ErrHeld)
	g, err = s.renew(g, 0)
	s.must(err)
	if len(g.Leases) != 3 {
		s.Fatalf("the renewed set is %+v", g)
	}
	for _, l := range g.Leases {
		if !endsWith(l.ExpiresAt, renewed, began) || l.TTL != renewed.TTL {
			s.Errorf("the session ends at %v, and the lease of %s is %+v", renewed.ExpiresAt, l.Name, l)
		}
	}
}

func sessionWaits(s *fixture) {
	held := s.hold(2, "holder")
	began := time.Now()
	session := s.openSession(lock.OpenSession{})
	w := s.enqueue(lock.Acquire{Locks: s.set(1, 2), Holder: "set", SessionID: session.ID})
	if info, err := s.locks().Session(s.ctx, session.ID.Ref()); err != nil || info.Leases != 0 || info.Places != 2 {
		s.Errorf("the session is %+v, %v", info, err)
	}
	s.must(s.release(held))
	g := w.mustBeGranted()
	s.expectSet(g, s.others(1, 2))
	if g.Session != session.ID.Ref() || !endsWith(g.ExpiresAt, session, began) || g.Token <= held.Token {
		s.Errorf("in %+v the set is %+v", session, g.Lease)
	}
	if info, err := s.locks().Session(s.ctx, session.ID.Ref()); err != nil || info.Leases != 2 || info.Places != 0 || len(info.Locks) != 2 {
		s.Errorf("the session is %+v, %v", info, err)
	}
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
	s.expectHeld(map[int]string{1: "", 2: ""})
}

// fillSession acquires the set {1, 2} and the lock 3 in the session, lets the set {4, 9} wait in it, for 9 is held,
// and lets others wait for what it has.
func (s *fixture) fillSession(id lock.SessionID) (set lock.Grant, waiter *waitingCall, others []*waitingCall) {
	s.Helper()
	s.hold(9, "holder")
	set = s.mustAcquire(lock.Acquire{Locks: s.set(2, 1), SessionID: id})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(3)), SessionID: id})
	waiter = s.enqueue(lock.Acquire{Locks: s.set(9, 4), Holder: "waiter", SessionID: id})
	return set, waiter, []*waitingCall{
		s.startAcquire(lock.Acquire{Locks: s.set(1, 3), Holder: "a", Wait: lock.MaxWait}),
		s.startAcquire(lock.Acquire{Locks: lock.One(s.other(2)), Holder: "b", Wait: lock.MaxWait}),
		s.startAcquire(lock.Acquire{Locks: s.set(4, 5), Holder: "c", Wait: lock.MaxWait}),
	}
}

// expectNothingLeft ends the test unless the others were granted what the session had, which has ended.
func (s *fixture) expectNothingLeft(set lock.Grant, waiter *waitingCall, others []*waitingCall, how lock.Kind) {
	s.Helper()
	s.expectSessionLost(waiter.refusal(), how)
	for _, w := range others {
		if g := w.mustBeWoken(); g.Holder != "c" && g.Token <= set.Token {
			s.Errorf("after token %d the next set is %+v", set.Token, g.Lease)
		}
	}
	s.expectHeld(map[int]string{1: "a", 2: "b", 3: "a", 4: "c", 5: "c", 9: "holder"})
	for _, n := range []int{4, 9} {
		if q := s.queue(s.other(n)).Waiters; len(q) != 0 {
			s.Errorf("the queue of lock %d is %+v", n, q)
		}
	}
	s.expectLost(errOf(s.renew(set, 0)), how)
	s.expectSessionLost(errOf(s.locks().RenewSession(s.ctx, lock.RenewSession{ID: waiter.request.SessionID})), how)
}

func sessionCloses(s *fixture) {
	session := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	set, waiter, others := s.fillSession(session.ID)
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
	s.expectNothingLeft(set, waiter, others, lock.Released)
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
}

func sessionExpires(s *fixture) {
	session := s.openSession(lock.OpenSession{TTL: mediumTTL})
	set, waiter, others := s.fillSession(session.ID)
	s.expectNothingLeft(set, waiter, others, lock.Expired)
	s.expectLost(s.release(set), lock.Expired)
}

func sessionRevoked(s *fixture) {
	session := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	set, waiter, others := s.fillSession(session.ID)
	info, err := s.locks().RevokeSession(s.ctx, lock.RevokeSession{Ref: session.ID.Ref(), Reason: testReason, SkipGrace: true})
	s.must(err)
	if info.Ended != lock.Revoked || info.Reason != testReason || info.Leases != 0 || info.Places != 0 {
		s.Errorf("the revoked session is %+v", info)
	}
	s.expectNothingLeft(set, waiter, others, lock.Revoked)
	if e := s.expectLost(s.release(set), lock.Revoked); e.Reason != testReason {
		s.Errorf("the reason is %q", e.Reason)
	}
	s.expectGraceLeft(session.ID, false)
}

// expectGraceLeft checks what the holder of the revoked session is told of its grace.
func (s *fixture) expectGraceLeft(id lock.SessionID, want bool) {
	s.Helper()
	_, err := s.locks().RenewSession(s.ctx, lock.RenewSession{ID: id})
	e := new(lock.Error)
	if !errors.As(err, &e) || e.Code != lock.ErrSessionLost || e.Ended != lock.Revoked || e.GraceLeft > 0 != want || e.GraceLeft > lock.MaxGrace {
		s.Errorf("the holder of the session is told %v of its grace, %v", e.GraceLeft, err)
	}
}

func sessionRevokedInGrace(s *fixture) {
	session := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	g := s.mustAcquire(lock.Acquire{Locks: s.set(1, 2), SessionID: session.ID})
	_, err := s.locks().RevokeSession(s.ctx, lock.RevokeSession{Ref: session.ID.Ref(), Reason: testReason})
	s.must(err)
	for _, name := range namesOf(g) {
		if l := s.get(name); l.State != lock.InGrace || !l.Leases[0].Revoked {
			s.Errorf("after the revocation the lock is %+v", l)
		}
	}
	s.expectError(errOf(s.acquire(lock.Acquire{Locks: s.set(2, 3), Holder: "second"})), lock.ErrHeld)
	s.expectGraceLeft(session.ID, true)
	s.mustSkipGrace(g)
	s.expectHeld(map[int]string{1: "", 2: ""})
	_, err = s.locks().RevokeSession(s.ctx, lock.RevokeSession{Ref: session.ID.Ref(), Reason: testReason, SkipGrace: true})
	s.must(err)
	s.expectGraceLeft(session.ID, false)
}

// sessionCounts: each lease that is revoked, also those of a set, and none that ends otherwise.
func sessionCounts(s *fixture) {
	g, other := s.openSession(lock.OpenSession{Grace: lock.MaxGrace}), s.openSession(lock.OpenSession{})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(8)), SessionID: other.ID})
	want := func(n int64) {
		s.Helper()
		renewed, err := s.locks().RenewSession(s.ctx, lock.RenewSession{ID: g.ID})
		s.must(err)
		again := s.openSession(lock.OpenSession{ID: g.ID})
		if renewed.RevokedLeases != n || again.RevokedLeases != n || !again.Replayed {
			s.Errorf("the session counts %d revoked leases, and %d when it is opened again; want %d", renewed.RevokedLeases, again.RevokedLeases, n)
		}
	}
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	want(0)
	s.mustRevoke(a)
	want(1)
	s.mustRevoke(a)
	s.mustSkipGrace(a)
	want(1)
	s.mustSkipGrace(s.mustAcquire(lock.Acquire{SessionID: g.ID}))
	want(2)
	set := s.mustAcquire(lock.Acquire{Locks: s.set(1, 2, 3), SessionID: g.ID})
	s.must(errOf(s.locks().Revoke(s.ctx, lock.Revoke{Name: s.other(2), Token: set.Token, Reason: testReason})))
	want(5)
	s.mustSkipGrace(s.mustAcquire(lock.Acquire{Locks: s.set(4, 5), SessionID: g.ID}))
	want(7)
	s.must(s.release(s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(6)), SessionID: g.ID})))
	short := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(7)), SessionID: g.ID, MaxHold: shortTTL})
	s.eventually("the lease is over", func() bool { return errOf(s.renew(short, 0)) != nil })
	s.mustSkipGrace(s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(9))}))
	want(7)
	if renewed, err := s.locks().RenewSession(s.ctx, lock.RenewSession{ID: other.ID}); err != nil || renewed.RevokedLeases != 0 {
		s.Errorf("the other session is %+v, %v", renewed, err)
	}
}

func sessionReplays(s *fixture) {
	g := s.openSession(lock.OpenSession{Metadata: []byte(`{"pid":7}`)})
	if g.Replayed || g.Holder != "first" || g.TTL != longTTL {
		s.Errorf("the session is %+v", g)
	}
	again := s.openSession(lock.OpenSession{ID: g.ID, TTL: shortTTL})
	if !again.Replayed || again.TTL != longTTL || !isNear(again.ExpiresAt, g.ExpiresAt) || string(again.Metadata) != `{"pid":7}` {
		s.Errorf("the replay is %+v, want %+v", again, g)
	}
	s.expectError(errOf(s.locks().OpenSession(s.ctx, lock.OpenSession{ID: g.ID, Holder: "second"})), lock.ErrSessionIDInUse)
}

func sessionLost(s *fixture) {
	g := s.openSession(lock.OpenSession{TTL: shortTTL})
	s.eventually("the session is over", func() bool {
		info, err := s.locks().Session(s.ctx, g.ID.Ref())
		s.must(err)
		return info.Ended == lock.Expired
	})
	for _, err := range []error{
		errOf(s.acquire(lock.Acquire{SessionID: g.ID})),
		errOf(s.locks().RenewSession(s.ctx, lock.RenewSession{ID: g.ID})),
		errOf(s.locks().OpenSession(s.ctx, lock.OpenSession{ID: g.ID, Holder: "first"})),
		s.locks().CloseSession(s.ctx, lock.CloseSession{ID: g.ID}),
	} {
		s.expectSessionLost(err, lock.Expired)
	}
}

func sessionUnknown(s *fixture) {
	id := lock.SessionID(uuid.New())
	s.expectSessionLost(errOf(s.acquire(lock.Acquire{SessionID: id})), 0)
	s.expectSessionLost(errOf(s.locks().RenewSession(s.ctx, lock.RenewSession{ID: id})), 0)
	s.expectSessionLost(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: id}), 0)
	s.expectError(errOf(s.locks().Session(s.ctx, id.Ref())), lock.ErrNotFound)
	s.expectError(errOf(s.locks().RevokeSession(s.ctx, lock.RevokeSession{Ref: id.Ref(), Reason: testReason})), lock.ErrNotFound)
}

func sessionShows(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(9))})
	g := s.openSession(lock.OpenSession{Metadata: []byte(`{"pid":7}`)})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	b := s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: s.other(1), Mode: lock.Permit, Capacity: 2, Permits: 2}}, SessionID: g.ID})
	s.enqueue(lock.Acquire{Locks: lock.One(held.Name), Holder: "waiter", SessionID: g.ID})
	info, err := s.locks().Session(s.ctx, g.ID.Ref())
	s.must(err)
	if info.Ref != g.ID.Ref() || info.Holder != "first" || info.Leases != 2 || info.Places != 1 || info.Ended != 0 ||
		info.Remaining <= 0 || info.Remaining > longTTL || string(info.Metadata) != `{"pid":7}` {
		s.Errorf("the session is %+v", info)
	}
	want := []lock.SessionLock{
		{Name: a.Name, Mode: lock.Exclusive, Token: a.Token},
		{Name: b.Name, Mode: lock.Permit, Slot: 1, Slots: "1 2", Token: b.Token},
		{Name: held.Name, Mode: lock.Exclusive, Place: s.queue(held.Name).Waiters[0].Place},
	}
	for i, l := range want {
		if i >= len(info.Locks) || info.Locks[i] != l {
			s.Fatalf("the session keeps %+v, want %+v", info.Locks, want)
		}
	}
	if l := s.get(s.name).Leases[0]; l.Session != g.ID.Ref() {
		s.Errorf("the lease is of the session %v", l.Session)
	}
}

func sessionLists(s *fixture) {
	holder := s.name[len("locktest-"):]
	var want []lock.SessionGrant
	for range 3 {
		want = append(want, s.openSession(lock.OpenSession{Holder: holder}))
	}
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: want[2].ID}))
	found := map[lock.SessionRef]bool{}
	for q := (paddock.SessionQuery{Holder: holder, Limit: 1}); ; {
		page, err := s.locks().Sessions(s.ctx, q)
		s.must(err)
		for _, info := range page.Items {
			found[info.Ref] = true
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if len(found) != 2 || !found[want[0].ID.Ref()] || !found[want[1].ID.Ref()] {
		s.Errorf("the list has %v, want the two that are open", found)
	}
}

func sessionBatch(s *fixture) {
	g := s.openSession(lock.OpenSession{})
	var items []lock.Command
	for i := range 20 {
		items = append(items, lock.Acquire{Locks: lock.One(s.other(i)), LeaseID: newID(), Holder: "first", SessionID: g.ID})
	}
	items = append(items, lock.Acquire{Locks: lock.One(s.name), LeaseID: newID(), Holder: "first", SessionID: lock.SessionID(uuid.New())})
	results := s.locks().Batch(s.ctx, items)
	for _, r := range results[:20] {
		s.must(r.Err)
	}
	s.expectSessionLost(results[20].Err, 0)
	if info, err := s.locks().Session(s.ctx, g.ID.Ref()); err != nil || info.Leases != 20 {
		s.Errorf("the session is %+v, %v", info, err)
	}
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
	for i := range 20 {
		if l := s.get(s.other(i)); l.State != lock.Free {
			s.Errorf("%s is %+v", l.Name, l)
		}
	}
}

// sessionRace: heartbeats and takeovers at the end of a session. If a heartbeat was confirmed after another was
// granted the lock, both would work.
func sessionRace(s *fixture) {
	for range 10 {
		g := s.openSession(lock.OpenSession{TTL: 3 * shortTTL})
		a, err := s.acquire(lock.Acquire{SessionID: g.ID})
		if errors.Is(err, lock.ErrSessionLost) {
			continue // the machine is too slow for this round
		}
		s.must(err)
		var both sync.WaitGroup
		var renewed lock.SessionGrant
		var taken lock.Grant
		var lost, refused error
		time.Sleep(time.Until(g.Until) - tolerance/10)
		both.Go(func() { renewed, lost = s.locks().RenewSession(s.ctx, lock.RenewSession{ID: g.ID, TTL: longTTL}) })
		both.Go(func() {
			for range 20 {
				if taken, refused = s.acquire(lock.Acquire{Holder: "second"}); refused == nil {
					return
				}
			}
		})
		both.Wait()
		if lost == nil && refused == nil {
			s.Fatalf("the session was renewed until %v, and its lock granted at %v, token %d after %d",
				renewed.ExpiresAt, taken.AcquiredAt, taken.Token, a.Token)
		}
		if refused == nil {
			s.must(s.release(taken))
		}
		if lost == nil {
			s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
		}
		s.awaitState(s.name, lock.Free)
	}
}
