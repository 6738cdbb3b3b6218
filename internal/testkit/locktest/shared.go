package locktest

import (
	"fmt"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func sharedCases() cases {
	return cases{
		"readers hold the lock together with one token":                         sharedTogether,
		"a reader after all others have released has a greater token":           sharedPhases,
		"readers and writers exclude each other":                                sharedExclude,
		"a reader does not pass a waiting writer":                               sharedBehindWriter,
		"adjacent waiting readers are granted the lock together":                sharedPrefix,
		"a reader's acquire is replayed":                                        sharedReplay,
		"each of several readers renews by itself":                              sharedRenew,
		"each of several readers releases by itself":                            sharedRelease,
		"each of several readers expires by itself":                             sharedExpire,
		"a revocation ends all readers with the token":                          sharedRevoke,
		"a revocation with a slot ends one reader":                              sharedRevokeOne,
		"readers are listed by holder and state":                                sharedList,
		"readers can write with their token until a writer is granted the lock": sharedFence,
	}
}

// mustAcquireShared acquires a shared lease.
func (s *fixture) mustAcquireShared(holder string) lock.Grant {
	s.Helper()
	g := s.mustAcquire(lock.Acquire{Holder: holder, Mode: lock.Shared})
	if g.Mode != lock.Shared || g.Slot < 1 || g.Holder != holder {
		s.Fatalf("a reader was granted %+v", g)
	}
	return g
}

func sharedTogether(s *fixture) {
	slots := map[int]bool{}
	var token lock.Token
	for i := range 5 {
		g := s.mustAcquireShared(fmt.Sprint(i))
		if i > 0 && g.Token != token {
			s.Errorf("overlapping readers have the tokens %d and %d", token, g.Token)
		}
		slots[g.Slot], token = true, g.Token
	}
	l := s.expectHolders("0", "1", "2", "3", "4")
	if len(slots) != 5 || l.State != lock.Held || l.Token != token || l.Revision != 5 || l.Capacity != 0 {
		s.Errorf("5 readers have the slots %v, and the lock is %+v", slots, l)
	}
	for _, h := range l.Leases {
		if h.Mode != lock.Shared || h.Token != token || !slots[h.Slot] {
			s.Errorf("a reader is shown as %+v", h)
		}
	}
	s.verifyHistory(s.name, verify.Rules{})
}

func sharedPhases(s *fixture) {
	first := s.mustAcquireShared("1")
	second := s.mustAcquireShared("2")
	s.must(s.release(first))
	third := s.mustAcquireShared("3")
	s.must(s.release(second))
	s.must(s.release(third))
	if third.Token != first.Token {
		s.Errorf("overlapping readers have the tokens %d and %d", first.Token, third.Token)
	}
	if next := s.mustAcquireShared("4"); next.Token <= third.Token {
		s.Errorf("the next reader has token %d after %d", next.Token, third.Token)
	}
	s.verifyHistory(s.name, verify.Rules{})
}

func sharedExclude(s *fixture) {
	reader := s.mustAcquireShared("reader")
	_, err := s.acquire(lock.Acquire{Holder: "writer"})
	if e := s.expectError(err, lock.ErrHeld); e.Holder != "reader" || e.Newest != reader.Token {
		s.Errorf("the refusal is %+v", e)
	}
	s.must(s.release(reader))
	writer := s.mustAcquire(lock.Acquire{Holder: "writer"})
	if writer.Token <= reader.Token {
		s.Errorf("token %d was granted after %d", writer.Token, reader.Token)
	}
	_, err = s.acquire(lock.Acquire{Holder: "reader", Mode: lock.Shared})
	s.expectError(err, lock.ErrHeld)
}

func sharedBehindWriter(s *fixture) {
	first := s.mustAcquireShared("first")
	writer := s.enqueue(lock.Acquire{Holder: "writer"})
	_, err := s.acquire(lock.Acquire{Holder: "not waiting", Mode: lock.Shared})
	if e := s.expectError(err, lock.ErrHeld); e.Ahead != 1 {
		s.Errorf("the refusal is %+v, want one ahead", e)
	}
	second := s.enqueue(lock.Acquire{Holder: "second", Mode: lock.Shared})
	s.must(s.release(first))
	s.expectHolders("writer")
	s.must(s.release(writer.mustBeGranted()))
	s.expectHolders("second")
	s.must(s.release(second.mustBeGranted()))
	s.verifyHistory(s.name, verify.Rules{})
}

func sharedPrefix(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	early := []*waitingCall{
		s.enqueue(
			lock.Acquire{Holder: "reader 1", Mode: lock.Shared},
		), s.enqueue(lock.Acquire{Holder: "reader 2", Mode: lock.Shared}),
		s.enqueue(lock.Acquire{Holder: "reader 3", Mode: lock.Shared}),
	}
	writer := s.enqueue(lock.Acquire{Holder: "writer"})
	late := s.enqueue(lock.Acquire{Holder: "reader 4", Mode: lock.Shared})
	s.must(s.release(g))
	s.expectHolders("reader 1", "reader 2", "reader 3")
	for i, r := range early {
		if r.mustBeGranted().Token != early[0].grant.Token {
			s.Errorf("reader %d has token %d, the first has %d", i+1, r.grant.Token, early[0].grant.Token)
		}
	}
	s.expectQueue("writer", "reader 4")
	for _, r := range early {
		s.must(s.release(r.grant))
	}
	s.expectHolders("writer")
	s.must(s.release(writer.mustBeGranted()))
	s.must(s.release(late.mustBeGranted()))
	s.verifyHistory(s.name, verify.Rules{})
}

func sharedReplay(s *fixture) {
	s.mustAcquireShared("first")
	g := s.mustAcquireShared("second")
	s.mustAcquireShared("third")
	again := s.mustAcquire(lock.Acquire{Holder: "second", Mode: lock.Shared, LeaseID: g.ID})
	if !again.Replayed || again.Slot != g.Slot || again.Token != g.Token || !isNear(again.ExpiresAt, g.ExpiresAt) {
		s.Errorf("the lease %+v was replayed as %+v", g, again)
	}
	_, err := s.acquire(lock.Acquire{Holder: "second", LeaseID: g.ID})
	s.expectError(err, lock.ErrLeaseIDInUse)
	s.expectHolders("first", "second", "third")
}

func sharedRenew(s *fixture) {
	first, second := s.mustAcquireShared("first"), s.mustAcquireShared("second")
	r, err := s.renew(second, 2*longTTL)
	s.must(err)
	if r.Slot != second.Slot || r.Token != second.Token || r.Mode != lock.Shared {
		s.Errorf("the lease %+v was renewed as %+v", second, r)
	}
	for _, h := range s.expectHolders("first", "second").Leases {
		if moved := !isNear(h.ExpiresAt, first.ExpiresAt) && !isNear(h.ExpiresAt, second.ExpiresAt); moved != (h.Slot == second.Slot) {
			s.Errorf("after the renewal of slot %d slot %d ends at %v", second.Slot, h.Slot, h.ExpiresAt)
		}
	}
}

func sharedRelease(s *fixture) {
	g := []lock.Grant{s.mustAcquireShared("first"), s.mustAcquireShared("second"), s.mustAcquireShared("third")}
	for range 2 {
		s.must(s.release(g[1]))
		s.expectHolders("first", "third")
	}
	_, err := s.renew(g[1], 0)
	s.expectLost(err, lock.Released)
	_, err = s.renew(g[0], 0)
	s.must(err)
	s.must(s.release(g[2]))
	s.must(s.release(g[0]))
	s.expectHolders()
	s.mustAcquire(lock.Acquire{Holder: "writer"})
}

func sharedExpire(s *fixture) {
	short := s.mustAcquire(lock.Acquire{Holder: "short", Mode: lock.Shared, TTL: shortTTL})
	long := s.mustAcquireShared("long")
	s.eventually("the lease has ended", func() bool { return len(s.get(s.name).Leases) == 1 })
	_, err := s.renew(short, longTTL)
	s.expectLost(err, lock.Expired)
	if l := s.expectHolders("long"); l.State != lock.Held || l.Leases[0].Slot != long.Slot {
		s.Errorf("the lock is %+v", l)
	}
	_, err = s.renew(long, 0)
	s.must(err)
}

func sharedRevoke(s *fixture) {
	g := []lock.Grant{s.mustAcquireShared("first"), s.mustAcquireShared("second"), s.mustAcquireShared("third")}
	writer := s.enqueue(lock.Acquire{Holder: "writer"})
	s.mustRevoke(g[0])
	s.expectHolders("writer")
	for _, reader := range g {
		_, err := s.renew(reader, 0)
		if e := s.expectLost(err, lock.Revoked); e.Reason != testReason || e.Token != reader.Token {
			s.Errorf("the refusal is %+v", e)
		}
	}
	s.must(s.release(writer.mustBeGranted()))
	s.verifyHistory(s.name, verify.Rules{})
}

func sharedRevokeOne(s *fixture) {
	first, second := s.mustAcquireShared("first"), s.mustAcquireShared("second")
	wrong := first.Slot + second.Slot + 1
	_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: first.Token, Slot: &wrong, Reason: testReason})
	s.expectError(err, lock.ErrTokenMismatch)
	_, err = s.locks.Revoke(
		s.ctx,
		lock.Revoke{Name: s.name, Token: first.Token, Slot: &first.Slot, Reason: testReason},
	)
	s.must(err)
	s.expectHolders("second")
	_, err = s.renew(first, 0)
	s.expectLost(err, lock.Revoked)
	_, err = s.renew(second, 0)
	s.must(err)
}

func sharedList(s *fixture) {
	s.mustAcquireShared("first")
	s.mustAcquireShared("second")
	s.mustAcquire(lock.Acquire{Holder: "third", Mode: lock.Shared, TTL: shortTTL, Grace: lock.MaxGrace})
	s.eventually("the third is in its grace", func() bool {
		for _, h := range s.get(s.name).Leases {
			if h.Holder == "third" && h.Remaining == 0 {
				return true
			}
		}
		return false
	})
	for _, holder := range []string{"first", "second", "third"} {
		page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name, Holder: holder, State: lock.Held})
		s.must(err)
		if len(page.Items) != 1 || len(page.Items[0].Leases) != 3 || page.Items[0].State != lock.Held {
			s.Errorf("the locks of %s are %+v, want the lock with its three readers", holder, page.Items)
		}
	}
	if got := s.names(lock.LockQuery{Prefix: s.name, State: lock.InGrace}); len(got) != 0 {
		s.Errorf("the locks in grace are %v, want none: two leases are active", got)
	}
}

func sharedFence(s *fixture) {
	first, second := s.mustAcquireShared("first"), s.mustAcquireShared("second")
	s.mustWrite(second.Token, `1`)
	s.mustWrite(first.Token, `2`)
	s.must(s.release(second))
	v, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: second.Token, Slot: &second.Slot})
	s.must(err)
	if v.Status != lock.Ended {
		s.Errorf("the verification of a free slot is %+v", v)
	}
	s.expectStatus(first.Token, lock.Current, first.Token)
	s.must(s.release(first))
	writer := s.mustAcquire(lock.Acquire{Holder: "writer"})
	_, err = s.write(first.Token, `3`)
	s.expectStale(err, first.Token, writer.Token)
}
