package locktest

import (
	"fmt"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func sharing() cases {
	return cases{
		"readers have the lock together, with one token":     sharedTogether,
		"each phase of readers has a greater token":          sharedPhases,
		"readers and writers exclude each other":             sharedExclude,
		"a reader does not pass a writer that waits":         sharedTurn,
		"readers that wait one after another are let in":     sharedPrefix,
		"a reader's acquire is replayed":                     sharedReplay,
		"one of several readers renews for itself":           sharedRenew,
		"one of several readers releases for itself":         sharedRelease,
		"one of several readers expires for itself":          sharedExpire,
		"a revocation ousts all readers of the phase":        sharedRevoke,
		"a revocation that names a slot ousts one reader":    sharedRevokeOne,
		"readers are found by holder, mode and state":        sharedList,
		"readers write under their token until a writer has": sharedFence,
	}
}

// reads is granted the lock together with others.
func (s *scene) reads(holder string) lock.Grant {
	s.Helper()
	g := s.granted(lock.Acquire{Holder: holder, Mode: lock.Shared})
	if g.Mode != lock.Shared || g.Slot < 1 || g.Holder != holder {
		s.Fatalf("a reader was granted %+v", g)
	}
	return g
}

func sharedTogether(s *scene) {
	slots := map[int]bool{}
	var token lock.Token
	for i := range 5 {
		g := s.reads(fmt.Sprint(i))
		if i > 0 && g.Token != token {
			s.Errorf("readers of one phase have the tokens %d and %d", token, g.Token)
		}
		slots[g.Slot], token = true, g.Token
	}
	l := s.held("0", "1", "2", "3", "4")
	if len(slots) != 5 || l.State != lock.Held || l.Token != token || l.Revision != 5 || l.Capacity != 0 {
		s.Errorf("in the slots %v there are 5 readers, and the lock is %+v", slots, l)
	}
	for _, h := range l.Leases {
		if h.Mode != lock.Shared || h.Token != token || !slots[h.Slot] {
			s.Errorf("a reader is shown as %+v", h)
		}
	}
	s.proven(s.name, verify.Rules{})
}

func sharedPhases(s *scene) {
	first := s.reads("1")
	second := s.reads("2")
	s.must(s.release(first))
	third := s.reads("3")
	s.must(s.release(second))
	s.must(s.release(third))
	if third.Token != first.Token {
		s.Errorf("within one phase the tokens are %d and %d", first.Token, third.Token)
	}
	if next := s.reads("4"); next.Token <= third.Token {
		s.Errorf("the next phase has token %d after %d", next.Token, third.Token)
	}
	s.proven(s.name, verify.Rules{})
}

func sharedExclude(s *scene) {
	reader := s.reads("reader")
	_, err := s.acquire(lock.Acquire{Holder: "writer"})
	if e := s.refused(err, lock.ErrHeld); e.Holder != "reader" || e.Newest != reader.Token {
		s.Errorf("the refusal is %+v", e)
	}
	s.must(s.release(reader))
	writer := s.granted(lock.Acquire{Holder: "writer"})
	if writer.Token <= reader.Token {
		s.Errorf("token %d was granted after %d", writer.Token, reader.Token)
	}
	_, err = s.acquire(lock.Acquire{Holder: "reader", Mode: lock.Shared})
	s.refused(err, lock.ErrHeld)
}

func sharedTurn(s *scene) {
	first := s.reads("first")
	writer := s.joins(lock.Acquire{Holder: "writer"})
	_, err := s.acquire(lock.Acquire{Holder: "a try", Mode: lock.Shared})
	if e := s.refused(err, lock.ErrHeld); e.Ahead != 1 {
		s.Errorf("the refusal is %+v, want one ahead", e)
	}
	second := s.joins(lock.Acquire{Holder: "second", Mode: lock.Shared})
	s.must(s.release(first))
	s.held("writer")
	s.must(s.release(writer.has()))
	s.held("second")
	s.must(s.release(second.has()))
	s.proven(s.name, verify.Rules{})
}

func sharedPrefix(s *scene) {
	g := s.granted(lock.Acquire{})
	early := []*call{
		s.joins(lock.Acquire{Holder: "reader 1", Mode: lock.Shared}), s.joins(lock.Acquire{Holder: "reader 2", Mode: lock.Shared}),
		s.joins(lock.Acquire{Holder: "reader 3", Mode: lock.Shared}),
	}
	writer := s.joins(lock.Acquire{Holder: "writer"})
	late := s.joins(lock.Acquire{Holder: "reader 4", Mode: lock.Shared})
	s.must(s.release(g))
	s.held("reader 1", "reader 2", "reader 3")
	for i, r := range early {
		if r.has().Token != early[0].grant.Token {
			s.Errorf("reader %d has token %d, the first has %d", i+1, r.grant.Token, early[0].grant.Token)
		}
	}
	s.stand("writer", "reader 4")
	for _, r := range early {
		s.must(s.release(r.grant))
	}
	s.held("writer")
	s.must(s.release(writer.has()))
	s.must(s.release(late.has()))
	s.proven(s.name, verify.Rules{})
}

func sharedReplay(s *scene) {
	s.reads("first")
	g := s.reads("second")
	s.reads("third")
	again := s.granted(lock.Acquire{Holder: "second", Mode: lock.Shared, LeaseID: g.ID})
	if !again.Replayed || again.Slot != g.Slot || again.Token != g.Token || !near(again.ExpiresAt, g.ExpiresAt) {
		s.Errorf("the lease %+v was replayed as %+v", g, again)
	}
	_, err := s.acquire(lock.Acquire{Holder: "second", LeaseID: g.ID})
	s.refused(err, lock.ErrLeaseIDInUse)
	s.held("first", "second", "third")
}

func sharedRenew(s *scene) {
	first, second := s.reads("first"), s.reads("second")
	r, err := s.renew(second, 2*alive)
	s.must(err)
	if r.Slot != second.Slot || r.Token != second.Token || r.Mode != lock.Shared {
		s.Errorf("the lease %+v was renewed as %+v", second, r)
	}
	for _, h := range s.held("first", "second").Leases {
		if moved := !near(h.ExpiresAt, first.ExpiresAt) && !near(h.ExpiresAt, second.ExpiresAt); moved != (h.Slot == second.Slot) {
			s.Errorf("after the renewal of slot %d slot %d ends at %v", second.Slot, h.Slot, h.ExpiresAt)
		}
	}
}

func sharedRelease(s *scene) {
	g := []lock.Grant{s.reads("first"), s.reads("second"), s.reads("third")}
	for range 2 {
		s.must(s.release(g[1]))
		s.held("first", "third")
	}
	_, err := s.renew(g[1], 0)
	s.lost(err, lock.Released)
	_, err = s.renew(g[0], 0)
	s.must(err)
	s.must(s.release(g[2]))
	s.must(s.release(g[0]))
	s.held()
	s.granted(lock.Acquire{Holder: "writer"})
}

func sharedExpire(s *scene) {
	short := s.granted(lock.Acquire{Holder: "short", Mode: lock.Shared, TTL: brief})
	long := s.reads("long")
	s.eventually("the lease is over", func() bool { return len(s.look(s.name).Leases) == 1 })
	_, err := s.renew(short, alive)
	s.lost(err, lock.Expired)
	if l := s.held("long"); l.State != lock.Held || l.Leases[0].Slot != long.Slot {
		s.Errorf("the lock is %+v", l)
	}
	_, err = s.renew(long, 0)
	s.must(err)
}

func sharedRevoke(s *scene) {
	g := []lock.Grant{s.reads("first"), s.reads("second"), s.reads("third")}
	writer := s.joins(lock.Acquire{Holder: "writer"})
	s.revoked(g[0])
	s.held("writer")
	for _, reader := range g {
		_, err := s.renew(reader, 0)
		if e := s.lost(err, lock.Revoked); e.Reason != theReason || e.Token != reader.Token {
			s.Errorf("the refusal is %+v", e)
		}
	}
	s.must(s.release(writer.has()))
	s.proven(s.name, verify.Rules{})
}

func sharedRevokeOne(s *scene) {
	first, second := s.reads("first"), s.reads("second")
	wrong := first.Slot + second.Slot + 1
	_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: first.Token, Slot: &wrong, Reason: theReason})
	s.refused(err, lock.ErrTokenMismatch)
	_, err = s.locks.Revoke(s.ctx, lock.Revoke{Name: s.name, Token: first.Token, Slot: &first.Slot, Reason: theReason})
	s.must(err)
	s.held("second")
	_, err = s.renew(first, 0)
	s.lost(err, lock.Revoked)
	_, err = s.renew(second, 0)
	s.must(err)
}

func sharedList(s *scene) {
	s.reads("first")
	s.reads("second")
	s.granted(lock.Acquire{Holder: "third", Mode: lock.Shared, TTL: brief, Grace: lock.MaxGrace})
	s.eventually("the third is in its grace", func() bool {
		for _, h := range s.look(s.name).Leases {
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
			s.Errorf("of %s there are %+v, want the lock with its three readers", holder, page.Items)
		}
	}
	if got := s.names(lock.LockQuery{Prefix: s.name, State: lock.InGrace}); len(got) != 0 {
		s.Errorf("in their grace there are %v, though two leases have not ended", got)
	}
}

func sharedFence(s *scene) {
	first, second := s.reads("first"), s.reads("second")
	s.wrote(second.Token, `1`)
	s.wrote(first.Token, `2`)
	s.must(s.release(second))
	v, err := s.locks.VerifyToken(s.ctx, lock.Verify{Name: s.name, Token: second.Token, Slot: &second.Slot})
	s.must(err)
	if v.Status != lock.Ended {
		s.Errorf("the verdict on a slot that is free again is %+v", v)
	}
	s.stands(first.Token, lock.Current, first.Token)
	s.must(s.release(first))
	writer := s.granted(lock.Acquire{Holder: "writer"})
	_, err = s.write(first.Token, `3`)
	s.stale(err, first.Token, writer.Token)
}
