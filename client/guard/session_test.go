package guard_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// openSession opens a session over the faulty connection.
func (s *fixture) openSession(o guard.SessionOptions) *guard.Session {
	s.Helper()
	o.OnState = s.states.add
	g, err := guard.OpenSession(s.Context(), s.service, o)
	s.must(err)
	s.Cleanup(func() {
		s.service.setFault(fault{})
		if err := g.Close(s.Context()); err != nil && !errors.Is(err, lock.ErrSessionLost) {
			s.Error(err)
		}
	})
	return g
}

// acquireIn acquires the nth lock in the session.
func (s *fixture) acquireIn(g *guard.Session, n int, o guard.Options) *guard.Lease {
	s.Helper()
	o.Session = g
	l, err := guard.Acquire(s.Context(), s.service, fmt.Sprintf("n:%d", n), o)
	s.must(err)
	return l
}

func TestASessionIsRenewedForAllOfItsLeases(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{})
		var leases []*guard.Lease
		for n := range 100 {
			leases = append(leases, s.acquireIn(g, n, guard.Options{}))
		}
		time.Sleep(24 * time.Hour)
		for n, l := range leases {
			if err := l.Err(); err != nil || l.State() != guard.Held || !l.Deadline().Equal(g.Deadline()) {
				t.Fatalf("lease %d is %v until %v, %v", n, l.State(), l.Deadline(), err)
			}
		}
		if n := len(s.service.sentAt("renew")); n > 0 {
			t.Errorf("%d renewals of single leases", n)
		}
		if n := len(s.service.sentAt("renew session")); n < 24*60*6 || n > 24*60*8 {
			t.Errorf("%d heartbeats in a day", n)
		}
		s.must(leases[0].Release(s.Context()))
		if err := leases[0].Err(); !errors.Is(err, guard.ErrReleased) || leases[1].Err() != nil {
			t.Errorf("after the release of one lease it is %v, and the next %v", err, leases[1].Err())
		}
		s.must(g.Close(s.Context()))
		for n, l := range leases[1:] {
			if err := l.Err(); !errors.Is(err, lock.ErrLeaseLost) || !errors.Is(err, guard.ErrReleased) {
				t.Fatalf("lease %d after the close: %v", n+1, err)
			}
		}
		if info, err := s.locks.Session(s.Context(), g.Ref()); err != nil || info.Leases != 0 || info.Ended != lock.Released {
			t.Errorf("the session is %+v, %v", info, err)
		}
	})
}

// TestWorkOfASessionStopsBeforeItCanEnd in an outage, that of all its leases.
func TestWorkOfASessionStopsBeforeItCanEnd(t *testing.T) {
	for what, f := range map[string]fault{
		"requests are lost":       {blackHole: true},
		"answers are lost":        {loseAnswer: true},
		"connections are refused": {refuse: true},
	} {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				g := s.openSession(guard.SessionOptions{})
				a, b := s.acquireIn(g, 1, guard.Options{}), s.acquireIn(g, 2, guard.Options{})
				work, cancel := a.Context(s.Context())
				defer cancel()
				time.Sleep(time.Minute)
				s.service.setFault(f)
				<-work.Done()
				synctest.Wait()
				if err := context.Cause(work); !errors.Is(err, lock.ErrLeaseLost) || !errors.Is(err, lock.ErrSessionLost) || errors.Is(err, lock.ErrUnavailable) {
					t.Errorf("the work ended with %v", err)
				}
				if b.Err() == nil || g.Err() == nil || g.State() != guard.Lost || b.State() != guard.Lost {
					t.Errorf("the session is %v, the other lease %v", g.State(), b.State())
				}
				info, err := s.locks.Session(s.Context(), g.Ref())
				if err != nil || info.Ended != 0 || info.Remaining < 2*time.Second {
					t.Errorf("when the work stopped, the session was %+v, %v", info, err)
				}
				s.wantStates(guard.AtRisk, guard.Lost)
			})
		})
	}
}

func TestASessionSurvivesAShortOutage(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{})
		l := s.acquireIn(g, 1, guard.Options{})
		s.service.setFault(fault{refuse: true})
		time.Sleep(ttl / 2)
		if g.State() != guard.AtRisk || l.State() != guard.AtRisk || l.Err() != nil {
			t.Errorf("in the outage the session is %v and the lease %v, %v", g.State(), l.State(), l.Err())
		}
		s.service.setFault(fault{})
		time.Sleep(ttl / 2)
		if l.State() != guard.Held {
			t.Errorf("after the outage the lease is %v", l.State())
		}
		s.wantStates(guard.AtRisk, guard.Held)
	})
}

// TestAnEndOfASessionIsToldAtTheNextHeartbeat: an operator has revoked it.
func TestAnEndOfASessionIsToldAtTheNextHeartbeat(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{})
		l := s.acquireIn(g, 1, guard.Options{})
		_, err := s.locks.RevokeSession(s.Context(), lock.RevokeSession{Ref: g.Ref(), Reason: "stuck"})
		s.must(err)
		time.Sleep(ttl / 3)
		synctest.Wait()
		var e *lock.Error
		if err := l.Err(); !errors.As(errors.Unwrap(g.Err()), &e) && !errors.As(g.Err(), &e) || e.Reason != "stuck" || !errors.Is(err, lock.ErrLeaseLost) {
			t.Errorf("the session is %v, the lease %v", g.Err(), err)
		}
		if left := time.Until(l.GraceEnds()); left > 0 {
			t.Errorf("%v of a grace are left that the session does not have", left)
		}
	})
}

// TestTheGraceOfARevokedSessionIsThatOfItsLeases from the revocation on.
func TestTheGraceOfARevokedSessionIsThatOfItsLeases(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{Grace: time.Minute})
		l := s.acquireIn(g, 1, guard.Options{})
		ends := time.Now().Add(time.Minute)
		_, err := s.locks.RevokeSession(s.Context(), lock.RevokeSession{Ref: g.Ref(), Reason: "stuck"})
		s.must(err)
		<-l.Done()
		if !g.GraceEnds().Equal(ends) || !l.GraceEnds().Equal(ends) {
			t.Errorf("the grace of the session ends %v late, that of the lease %v", g.GraceEnds().Sub(ends), l.GraceEnds().Sub(ends))
		}
	})
}

// TestALostLeaseOfASessionIsFound though no call renews it: an operator has revoked it alone.
func TestALostLeaseOfASessionIsFound(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{})
		kept, revoked := s.acquireIn(g, 1, guard.Options{}), s.acquireIn(g, 2, guard.Options{})
		s.revokeOther("n:2", revoked.Token())
		time.Sleep(ttl / 3)
		synctest.Wait()
		var e *lock.Error
		if err := revoked.Err(); !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Reason != "stuck" {
			t.Errorf("the revoked lease is %v", err)
		}
		if kept.Err() != nil || g.Err() != nil {
			t.Errorf("the other lease is %v, the session %v", kept.Err(), g.Err())
		}
	})
}

// revokeOther revokes the lease of the lock, as an operator does.
func (s *fixture) revokeOther(name string, token lock.Token) {
	s.Helper()
	_, err := s.locks.Revoke(s.Context(), lock.Revoke{Name: name, Token: token, Reason: "stuck"})
	s.must(err)
}

// TestALostLeaseOfASessionIsFoundBesideOthers: another process has acquired more leases in the session meanwhile.
func TestALostLeaseOfASessionIsFoundBesideOthers(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{})
		revoked := s.acquireIn(g, 1, guard.Options{})
		for n := range 3 {
			s.grantOther(lock.Acquire{Locks: lock.One(fmt.Sprintf("other:%d", n)), SessionID: g.ID()})
		}
		s.revokeOther("n:1", revoked.Token())
		time.Sleep(ttl / 3)
		synctest.Wait()
		if err := revoked.Err(); !errors.Is(err, lock.ErrLeaseLost) || g.Err() != nil {
			t.Errorf("the revoked lease is %v, the session %v", err, g.Err())
		}
	})
}

// A caller calls functions around calls, and counts batches.
type caller struct {
	paddock.Service
	beforeHeartbeat func()
	afterAcquire    func(lock.Grant)
	failBatches     atomic.Int32 // this number of batches fails
	batches         atomic.Int32
	batchTime       time.Duration // of each
	running, most   atomic.Int32  // of batches at a time
}

func (c *caller) RenewSession(ctx context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	if c.beforeHeartbeat != nil {
		c.beforeHeartbeat()
	}
	return c.Service.RenewSession(ctx, r)
}

func (c *caller) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	g, err := c.Service.Acquire(ctx, a)
	if err == nil && c.afterAcquire != nil {
		c.afterAcquire(g)
	}
	return g, err
}

func (c *caller) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	c.batches.Add(1)
	c.most.Store(max(c.most.Load(), c.running.Add(1)))
	defer c.running.Add(-1)
	results := c.Service.Batch(ctx, items)
	time.Sleep(c.batchTime)
	if c.failBatches.Add(-1) >= 0 {
		for i := range results {
			results[i] = paddock.Result{Err: &lock.Error{Code: lock.ErrUnavailable}}
		}
	}
	return results
}

// TestALeaseThatWasRevokedBeforeItsAnswerIsFound: the heartbeat that tells of the revocation is answered before the
// acquire is.
func TestALeaseThatWasRevokedBeforeItsAnswerIsFound(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.service.Service = &caller{Service: s.service.Service, afterAcquire: func(g lock.Grant) {
			s.revokeOther(g.Name, g.Token)
			time.Sleep(ttl * 2 / 3 / 2)
		}}
		g := s.openSession(guard.SessionOptions{})
		l := s.acquireIn(g, 1, guard.Options{})
		time.Sleep(ttl / 3)
		synctest.Wait()
		if err := l.Err(); !errors.Is(err, lock.ErrLeaseLost) {
			t.Errorf("the revoked lease is %v", err)
		}
	})
}

// TestTheSearchForLostLeasesIsRepeated by the next heartbeat if it was not answered, and not after that.
func TestTheSearchForLostLeasesIsRepeated(t *testing.T) {
	withFixture(t, func(s *fixture) {
		c := &caller{Service: s.service.Service}
		s.service.Service = c
		g := s.openSession(guard.SessionOptions{})
		kept, revoked := s.acquireIn(g, 1, guard.Options{}), s.acquireIn(g, 2, guard.Options{})
		c.failBatches.Store(1)
		s.revokeOther("n:2", revoked.Token())
		time.Sleep(2 * ttl / 3)
		synctest.Wait()
		if err := revoked.Err(); !errors.Is(err, lock.ErrLeaseLost) || kept.Err() != nil {
			t.Errorf("the revoked lease is %v, the other one %v", err, kept.Err())
		}
		time.Sleep(time.Hour)
		if n := c.batches.Load(); n != 2 {
			t.Errorf("%d batches ask for lost leases, want 2", n)
		}
	})
}

// TestOneSearchForLostLeasesAtATime: heartbeats while it runs begin no other one. What was revoked meanwhile is found after
// it.
func TestOneSearchForLostLeasesAtATime(t *testing.T) {
	withFixture(t, func(s *fixture) {
		c := &caller{Service: s.service.Service, batchTime: 2 * ttl}
		s.service.Service = c
		g := s.openSession(guard.SessionOptions{})
		kept, first, second := s.acquireIn(g, 1, guard.Options{}), s.acquireIn(g, 2, guard.Options{}), s.acquireIn(g, 3, guard.Options{})
		s.revokeOther("n:2", first.Token())
		time.Sleep(ttl / 2)
		s.revokeOther("n:3", second.Token())
		time.Sleep(3 * ttl)
		if n := c.most.Load(); n != 1 {
			t.Errorf("%d batches ask for lost leases at a time", n)
		}
		time.Sleep(time.Hour)
		if n := c.batches.Load(); n != 2 {
			t.Errorf("%d batches ask for lost leases, want one after each revocation", n)
		}
		s.wantError(first.Err(), lock.ErrLeaseLost)
		s.wantError(second.Err(), lock.ErrLeaseLost)
		s.must(kept.Err())
	})
}

// TestAReleaseDuringAHeartbeatIsNoLoss, for which all other leases would have to be renewed.
func TestAReleaseDuringAHeartbeatIsNoLoss(t *testing.T) {
	withFixture(t, func(s *fixture) {
		leases := make(chan *guard.Lease, 10)
		r := &caller{Service: s.service.Service, beforeHeartbeat: func() { s.must((<-leases).Release(s.Context())) }}
		s.service.Service = r
		g := s.openSession(guard.SessionOptions{})
		for n := range 10 {
			leases <- s.acquireIn(g, n, guard.Options{})
		}
		time.Sleep(ttl)
		synctest.Wait()
		if n := r.batches.Load(); len(leases) == 10 || n > 0 {
			t.Errorf("%d leases are left, and %d batches ask whether they are lost", len(leases), n)
		}
	})
}

func TestALeaseOfASessionKeepsItsMaxHold(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{})
		l := s.acquireIn(g, 1, guard.Options{MaxHold: time.Minute})
		time.Sleep(time.Minute - 4*time.Second)
		s.must(l.Err())
		if left := time.Until(l.Deadline()); left > time.Second {
			t.Errorf("the deadline leaves %v", left)
		}
		time.Sleep(time.Second)
		if err := l.Err(); !errors.Is(err, lock.ErrLeaseLost) || g.Err() != nil {
			t.Errorf("the lease is %v, the session %v", err, g.Err())
		}
	})
}

func TestAWaiterOfASessionIsGrantedItsLock(t *testing.T) {
	withFixture(t, func(s *fixture) {
		other := s.grantOther(lock.Acquire{TTL: time.Hour})
		g := s.openSession(guard.SessionOptions{Holder: "worker"})
		time.AfterFunc(2*time.Minute, func() { s.releaseOther(other) })
		l, err := guard.Acquire(s.Context(), s.service, name, guard.Options{Session: g, Wait: guard.Forever})
		s.must(err)
		if now := s.lockNow(); now.Leases[0].Session != g.Ref() || now.Leases[0].Holder != "worker" || l.Err() != nil {
			t.Errorf("the lock is %+v, the lease %v", now, l.Err())
		}
	})
}

func TestOpeningASessionIsRepeated(t *testing.T) {
	withFixture(t, func(s *fixture) {
		s.service.setFault(fault{loseAnswer: true})
		time.AfterFunc(3*time.Second, func() { s.service.setFault(fault{}) })
		g := s.openSession(guard.SessionOptions{ID: lock.SessionID(uuid.New())})
		page, err := s.locks.Sessions(s.Context(), paddock.SessionQuery{})
		if err != nil || len(page.Items) != 1 || page.Items[0].Ref != g.Ref() {
			t.Errorf("the sessions are %+v, %v", page.Items, err)
		}
		_, err = guard.OpenSession(s.Context(), s.service, guard.SessionOptions{ID: g.ID(), Holder: "another"})
		s.wantError(err, lock.ErrSessionIDInUse)
	})
}

func TestOptionsOfASessionsLeaseAreChecked(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{})
		for what, o := range map[string]guard.Options{"ttl": {TTL: time.Minute}, "grace": {Grace: time.Second}, "margin": {Margin: time.Second}} {
			o.Session = g
			if _, err := guard.Acquire(s.Context(), s.service, name, o); !errors.Is(err, lock.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		s.must(g.Close(s.Context()))
		_, err := guard.Acquire(s.Context(), s.service, name, guard.Options{Session: g})
		s.wantError(err, lock.ErrSessionLost)
	})
}
