package locktest

import (
	"github.com/paddock-lock/paddock/lock"
)

func sessionShows(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Name: s.other(9)})
	g := s.openSession(lock.OpenSession{Metadata: []byte(`{"pid":7}`)})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	b := s.mustAcquire(lock.Acquire{Name: s.other(1), Mode: lock.Permit, Capacity: 2, SessionID: g.ID})
	s.enqueue(lock.Acquire{Name: held.Name, Holder: "waiter", SessionID: g.ID})
	info, err := s.locks.Session(s.ctx, g.ID.Ref())
	s.must(err)
	if info.Ref != g.ID.Ref() || info.Holder != "first" || info.Leases != 2 || info.Places != 1 || info.Ended != 0 ||
		info.Remaining <= 0 || info.Remaining > longTTL || string(info.Metadata) != `{"pid":7}` {
		s.Errorf("the session is %+v", info)
	}
	want := []lock.SessionLock{
		{Name: a.Name, Mode: lock.Exclusive, Token: a.Token},
		{Name: b.Name, Mode: lock.Permit, Slot: 1, Token: b.Token},
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
	holder := s.name[len("locktest:"):]
	var want []lock.SessionGrant
	for range 3 {
		want = append(want, s.openSession(lock.OpenSession{Holder: holder}))
	}
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: want[2].ID}))
	found := map[lock.SessionRef]bool{}
	for q := (lock.SessionQuery{Holder: holder, Limit: 1}); ; {
		page, err := s.locks.Sessions(s.ctx, q)
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
	_, err := s.locks.Sessions(s.ctx, lock.SessionQuery{Cursor: "x"})
	if e := s.expectError(err, lock.ErrInvalid); e.Field != "cursor" {
		s.Errorf("the field is %q", e.Field)
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
}

func sessionInUse(s *fixture) {
	g := s.openSession(lock.OpenSession{})
	_, err := s.locks.OpenSession(s.ctx, lock.OpenSession{ID: g.ID, Holder: "second"})
	s.expectError(err, lock.ErrSessionIDInUse)
}
