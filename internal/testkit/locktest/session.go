package locktest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

func sessionCases() cases {
	return cases{
		"a session keeps its leases alive":                        sessionKeepsLeases,
		"a renewal of a session's lease does not move it":         sessionLeaseRenewal,
		"the leases and places of an expired session end at once": sessionExpires,
		"a session's grace is that of its leases":                 sessionGrace,
		"a closed session has no lease and no place":              sessionCloses,
		"a revoked session has no lease and no place":             sessionRevoked,
		"a revoked session blocks others during its grace":        sessionRevokedInGrace,
		"opening a session again finds it":                        sessionReplays,
		"a session with another holder is refused":                sessionInUse,
		"an ended session cannot be used":                         sessionLost,
		"a session that never was cannot be used":                 sessionUnknown,
		"a session's lease has no times of its own":               sessionTimes,
		"a lease_id belongs to its session":                       sessionOfLease,
		"max_hold ends a lease before its session":                sessionMaxHold,
		"a session shows what it keeps alive":                     sessionShows,
		"sessions are listed by holder":                           sessionLists,
		"readers of a session share a token while it lives":       sessionReaders,
		"a waiter of a session is granted its lock":               sessionWaits,
		"a batch grants leases of a session":                      sessionBatch,
		"a heartbeat and a takeover never both succeed":           sessionRace,
	}
}

// openSession opens a session with a new ID. Its holder is "first" and its TTL longTTL unless o says otherwise.
func (s *fixture) openSession(o lock.OpenSession) lock.SessionGrant {
	s.Helper()
	if o.ID == (lock.SessionID{}) {
		o.ID = lock.SessionID(uuid.New())
	}
	if o.Holder == "" {
		o.Holder = "first"
	}
	if o.TTL == 0 {
		o.TTL = longTTL
	}
	g, err := s.locks.OpenSession(s.ctx, o)
	s.must(err)
	return g
}

// other returns the name of another lock of the test.
func (s *fixture) other(n int) string { return fmt.Sprintf("%s:%d", s.name, n) }

func (s *fixture) expectSessionLost(err error, how lock.Kind) {
	s.Helper()
	e := s.expectError(err, lock.ErrSessionLost)
	if e.Ended != how || e.EndedAt.IsZero() != (how == 0) {
		s.Errorf("the session ended by %v at %v, want %v", e.Ended, e.EndedAt, how)
	}
}

func sessionKeepsLeases(s *fixture) {
	g := s.openSession(lock.OpenSession{TTL: 4 * shortTTL, Grace: lock.MaxGrace})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	b := s.mustAcquire(lock.Acquire{Name: s.other(1), SessionID: g.ID})
	if !isNear(a.ExpiresAt, g.ExpiresAt) || !isNear(b.ExpiresAt, g.ExpiresAt) || a.TTL != g.TTL || a.Grace != g.Grace {
		s.Errorf("the session is %+v, and its leases are %+v and %+v", g, a, b)
	}
	for range 3 {
		time.Sleep(3 * shortTTL)
		renewed, err := s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID})
		s.must(err)
		if renewed.Leases != 2 || renewed.Places != 0 || !renewed.ExpiresAt.After(g.ExpiresAt) {
			s.Errorf("the renewed session is %+v", renewed)
		}
	}
	renewed, err := s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID, TTL: longTTL})
	s.must(err)
	for _, name := range []string{s.name, s.other(1)} {
		l := s.get(name)
		if l.State != lock.Held || len(l.Leases) != 1 || !isNear(l.Leases[0].ExpiresAt, renewed.ExpiresAt) || l.Revision != 1 {
			s.Errorf("%s is %+v, want a lease until %v", name, l, renewed.ExpiresAt)
		}
	}
}

func sessionLeaseRenewal(s *fixture) {
	g := s.openSession(lock.OpenSession{})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	_, err := s.renew(a, longTTL)
	if e := s.expectError(err, lock.ErrInvalid); e.Field != "ttl_ms" {
		s.Errorf("the field is %q", e.Field)
	}
	r, err := s.locks.Renew(s.ctx, lock.Renew{Name: a.Name, LeaseID: a.ID, Metadata: []byte(`{"step":2}`)})
	s.must(err)
	if !isNear(r.ExpiresAt, g.ExpiresAt) || r.Token != a.Token || string(r.Metadata) != `{"step":2}` {
		s.Errorf("the renewed lease is %+v", r)
	}
	s.must(s.release(a))
	s.expectLost(func() error { _, err := s.renew(a, 0); return err }(), lock.Released)
	if again, err := s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID}); err != nil || again.Leases != 0 {
		s.Errorf("after the release the session is %+v, %v", again, err)
	}
}

func sessionExpires(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Name: s.other(9)})
	g := s.openSession(lock.OpenSession{TTL: mediumTTL})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	b := s.mustAcquire(lock.Acquire{Name: s.other(1), Mode: lock.Permit, Capacity: 2, SessionID: g.ID})
	waiter := s.enqueue(lock.Acquire{Name: held.Name, Holder: "waiter", SessionID: g.ID})
	next := s.startAcquire(lock.Acquire{Holder: "next"})
	took := next.mustBeGranted()
	if took.Token <= a.Token || took.AcquiredAt.Before(g.ExpiresAt) {
		s.Errorf("the next lease is %+v, after one that ended at %v", took, g.ExpiresAt)
	}
	s.awaitState(b.Name, lock.Free)
	s.expectSessionLost(waiter.refusal(), lock.Expired)
	s.expectLost(func() error { _, err := s.renew(a, 0); return err }(), lock.Expired)
	s.expectLost(s.release(b), lock.Expired)
	if q := s.queue(held.Name); len(q.Waiters) != 0 {
		s.Errorf("the queue has %+v", q.Waiters)
	}
	s.expectSessionLost(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: g.ID}), lock.Expired)
}

func sessionGrace(s *fixture) {
	g := s.openSession(lock.OpenSession{TTL: shortTTL, Grace: lock.MaxGrace})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	s.awaitState(s.name, lock.InGrace)
	_, err := s.acquire(lock.Acquire{Holder: "second"})
	s.expectError(err, lock.ErrHeld)
	_, err = s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID, TTL: longTTL})
	s.must(err)
	if l := s.get(s.name); l.State != lock.Held || l.Token != a.Token {
		s.Errorf("after the heartbeat the lock is %+v", l)
	}
}

func sessionCloses(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Name: s.other(9)})
	g := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	b := s.mustAcquire(lock.Acquire{Name: s.other(1), Mode: lock.Shared, SessionID: g.ID})
	waiter := s.enqueue(lock.Acquire{Name: held.Name, Holder: "waiter", SessionID: g.ID})
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
	for _, name := range []string{a.Name, b.Name} {
		if l := s.get(name); l.State != lock.Free {
			s.Errorf("%s is %+v after the session was closed", name, l)
		}
	}
	s.expectSessionLost(waiter.refusal(), lock.Released)
	s.must(s.release(a))
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
	_, err := s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID})
	s.expectSessionLost(err, lock.Released)
}

func sessionRevoked(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Name: s.other(9)})
	g := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	waiter := s.enqueue(lock.Acquire{Name: held.Name, Holder: "waiter", SessionID: g.ID})
	info, err := s.locks.RevokeSession(s.ctx, lock.RevokeSession{Ref: g.ID.Ref(), Reason: "stuck", SkipGrace: true})
	s.must(err)
	if info.Ended != lock.Revoked || info.Reason != "stuck" || info.Leases != 0 || info.Places != 0 {
		s.Errorf("the revoked session is %+v", info)
	}
	s.mustAcquire(lock.Acquire{Holder: "second"})
	e := s.expectLost(func() error { _, err := s.renew(a, 0); return err }(), lock.Revoked)
	if e.Reason != "stuck" {
		s.Errorf("the reason is %q", e.Reason)
	}
	s.expectSessionLost(waiter.refusal(), lock.Revoked)
	_, err = s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID})
	s.expectSessionLost(err, lock.Revoked)
	_, err = s.locks.RevokeSession(s.ctx, lock.RevokeSession{Ref: g.ID.Ref() - 2, Reason: "stuck"})
	s.expectError(err, lock.ErrNotFound)
}

func sessionRevokedInGrace(s *fixture) {
	g := s.openSession(lock.OpenSession{Grace: lock.MaxGrace})
	s.mustAcquire(lock.Acquire{SessionID: g.ID})
	_, err := s.locks.RevokeSession(s.ctx, lock.RevokeSession{Ref: g.ID.Ref(), Reason: "stuck"})
	s.must(err)
	if l := s.get(s.name); l.State != lock.InGrace || !l.Leases[0].Revoked {
		s.Errorf("after the revocation the lock is %+v", l)
	}
	_, err = s.acquire(lock.Acquire{Holder: "second"})
	s.expectError(err, lock.ErrHeld)
}

func sessionLost(s *fixture) {
	g := s.openSession(lock.OpenSession{TTL: shortTTL})
	s.eventually("the session is over", func() bool {
		info, err := s.locks.Session(s.ctx, g.ID.Ref())
		s.must(err)
		return info.Ended == lock.Expired
	})
	_, err := s.acquire(lock.Acquire{SessionID: g.ID})
	s.expectSessionLost(err, lock.Expired)
	_, err = s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID})
	s.expectSessionLost(err, lock.Expired)
	_, err = s.locks.OpenSession(s.ctx, lock.OpenSession{ID: g.ID, Holder: "first"})
	s.expectSessionLost(err, lock.Expired)
}

func sessionUnknown(s *fixture) {
	id := lock.SessionID(uuid.New())
	_, err := s.acquire(lock.Acquire{SessionID: id})
	s.expectSessionLost(err, 0)
	_, err = s.locks.RenewSession(s.ctx, lock.RenewSession{ID: id})
	s.expectSessionLost(err, 0)
	s.expectSessionLost(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: id}), 0)
	_, err = s.locks.Session(s.ctx, id.Ref())
	s.expectError(err, lock.ErrNotFound)
}

func sessionTimes(s *fixture) {
	g := s.openSession(lock.OpenSession{})
	for field, a := range map[string]lock.Acquire{"ttl_ms": {TTL: longTTL}, "grace_ms": {Grace: time.Second}} {
		a.Name, a.Holder, a.SessionID = s.name, "first", g.ID
		_, err := s.locks.Acquire(s.ctx, a)
		if e := s.expectError(err, lock.ErrInvalid); e.Field != field {
			s.Errorf("the field is %q, want %q", e.Field, field)
		}
	}
	_, err := s.locks.RenewSession(s.ctx, lock.RenewSession{})
	if e := s.expectError(err, lock.ErrInvalid); e.Field != "session_id" {
		s.Errorf("the field is %q", e.Field)
	}
	_, err = s.locks.OpenSession(s.ctx, lock.OpenSession{})
	if e := s.expectError(err, lock.ErrInvalid); e.Field != "holder" {
		s.Errorf("the field is %q", e.Field)
	}
}

func sessionOfLease(s *fixture) {
	g, other := s.openSession(lock.OpenSession{}), s.openSession(lock.OpenSession{})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID})
	if again := s.mustAcquire(lock.Acquire{SessionID: g.ID, LeaseID: a.ID}); !again.Replayed || again.Token != a.Token {
		s.Errorf("the replay is %+v", again)
	}
	_, err := s.acquire(lock.Acquire{SessionID: other.ID, LeaseID: a.ID})
	s.expectError(err, lock.ErrLeaseIDInUse)
	_, err = s.acquire(lock.Acquire{LeaseID: a.ID})
	s.expectError(err, lock.ErrLeaseIDInUse)
}

func sessionMaxHold(s *fixture) {
	g := s.openSession(lock.OpenSession{})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID, MaxHold: 2 * shortTTL})
	if left := a.ExpiresAt.Sub(a.AcquiredAt); left != 2*shortTTL {
		s.Errorf("the lease ends after %v", left)
	}
	s.awaitState(s.name, lock.Free)
	s.mustAcquire(lock.Acquire{Holder: "second"})
	s.expectLost(s.release(a), lock.Expired)
	if info, err := s.locks.Session(s.ctx, g.ID.Ref()); err != nil || info.Ended != 0 {
		s.Errorf("the session is %+v, %v", info, err)
	}
}

// sessionReaders: a reader that comes when the session is over gets a token of its own, so that the token of the
// session's reader is stale.
func sessionReaders(s *fixture) {
	g := s.openSession(lock.OpenSession{TTL: mediumTTL})
	a := s.mustAcquire(lock.Acquire{SessionID: g.ID, Mode: lock.Shared})
	b := s.mustAcquire(lock.Acquire{Mode: lock.Shared})
	if b.Token != a.Token {
		s.Errorf("the readers have the tokens %d and %d", a.Token, b.Token)
	}
	s.must(s.release(b))
	s.eventually("the session is over", func() bool {
		info, err := s.locks.Session(s.ctx, g.ID.Ref())
		s.must(err)
		return info.Ended == lock.Expired
	})
	if c := s.mustAcquire(lock.Acquire{Mode: lock.Shared}); c.Token <= a.Token {
		s.Errorf("the next reader has the token %d, not more than %d", c.Token, a.Token)
	}
}

func sessionWaits(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	g := s.openSession(lock.OpenSession{})
	waiter := s.enqueue(lock.Acquire{Holder: "waiter", SessionID: g.ID})
	s.must(s.release(first))
	got := waiter.mustBeGranted()
	if got.Session != g.ID.Ref() || !isNear(got.ExpiresAt, g.ExpiresAt) || got.Token <= first.Token {
		s.Errorf("the waiter was granted %+v, want a lease until %v", got, g.ExpiresAt)
	}
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
	if l := s.get(s.name); l.State != lock.Free {
		s.Errorf("the lock is %+v", l)
	}
}

func sessionBatch(s *fixture) {
	g := s.openSession(lock.OpenSession{})
	var items []lock.Command
	for i := range 20 {
		items = append(items, lock.Acquire{Name: s.other(i), LeaseID: newID(), Holder: "first", SessionID: g.ID})
	}
	items = append(items, lock.Acquire{Name: s.name, LeaseID: newID(), Holder: "first", SessionID: lock.SessionID(uuid.New())})
	results := s.locks.Batch(s.ctx, items)
	for _, r := range results[:20] {
		s.must(r.Err)
	}
	s.expectSessionLost(results[20].Err, 0)
	if renewed, err := s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID}); err != nil || renewed.Leases != 20 {
		s.Errorf("the session is %+v, %v", renewed, err)
	}
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
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
		both.Go(func() { renewed, lost = s.locks.RenewSession(s.ctx, lock.RenewSession{ID: g.ID, TTL: longTTL}) })
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
			s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
		}
		s.awaitState(s.name, lock.Free)
	}
}
