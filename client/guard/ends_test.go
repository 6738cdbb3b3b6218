package guard_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// A tellingService is a faultyService that gives hints when the test says so.
type tellingService struct {
	*faultyService
	mu    sync.Mutex
	hints []func() // of those who watch
	ended []string // what is watched
	left  []time.Time
}

func (s *tellingService) WatchEnds(leases []lock.Lease, session lock.SessionRef, hint func()) (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range leases {
		s.ended = append(s.ended, l.Name)
	}
	if session != 0 {
		s.ended = append(s.ended, "session")
	}
	s.hints = append(s.hints, hint)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = append(s.left, time.Now())
	})
}

// hintAll gives a hint to all, and waits until they have acted on it.
func (s *tellingService) hintAll() {
	s.mu.Lock()
	hints := slices.Clone(s.hints)
	s.mu.Unlock()
	for _, hint := range hints {
		hint()
	}
	synctest.Wait()
}

// withHints runs a test with a fixture whose service gives hints.
func withHints(t *testing.T, test func(*fixture, *tellingService)) {
	withFixture(t, func(s *fixture) { test(s, &tellingService{faultyService: s.service}) })
}

// revokeAll revokes the lease of the lock.
func (s *fixture) revokeAll(name string) {
	s.Helper()
	l, err := s.locks.Lock(s.Context(), name)
	s.must(err)
	_, err = s.locks.Revoke(s.Context(), lock.Revoke{Name: name, Token: l.Token, Reason: "maintenance"})
	s.must(err)
}

func TestAHintRenewsAtOnce(t *testing.T) {
	withHints(t, func(s *fixture, told *tellingService) {
		l, err := guard.Acquire(s.Context(), told, name, s.options(guard.Options{TTL: ttl}))
		s.must(err)
		time.Sleep(time.Second)
		told.hintAll()
		if sent := s.service.sentAt("renew"); len(sent) != 1 || !sent[0].Equal(time.Now()) {
			s.Errorf("renewals were sent at %v, want one now", sent)
		}
		s.must(l.Err()) // a hint alone is no loss
		time.Sleep(ttl / 2)
		if sent := s.service.sentAt("renew"); len(sent) != 2 {
			s.Errorf("%d renewals were sent, want the usual ones, too", len(sent))
		}
		s.must(l.Release(s.Context()))
		s.wantStates(guard.Released)
	})
}

func TestARevocationIsHeardAtOnce(t *testing.T) {
	withHints(t, func(s *fixture, told *tellingService) {
		l, err := guard.AcquireAll(s.Context(), told, []lock.Member{{Name: "a"}, {Name: "b"}}, s.options(guard.Options{TTL: 10 * time.Minute}))
		s.must(err)
		if !slices.Equal(told.ended, []string{"a", "b"}) {
			s.Errorf("the guard watches %v, want all of its locks", told.ended)
		}
		s.revokeAll("b")
		told.hintAll()
		s.wantError(l.Err(), lock.ErrLeaseLost)
		if len(told.left) != 1 {
			s.Error("a lost lease is still watched")
		}
		s.wantStates(guard.Lost)
	})
}

// TestAHintDuringAnOutageIsNoLoss: the renewal alone decides.
func TestAHintDuringAnOutageIsNoLoss(t *testing.T) {
	withHints(t, func(s *fixture, told *tellingService) {
		l, err := guard.Acquire(s.Context(), told, name, s.options(guard.Options{TTL: ttl}))
		s.must(err)
		s.service.setFault(fault{refuse: true})
		told.hintAll()
		s.must(l.Err())
		s.service.setFault(fault{})
		time.Sleep(ttl)
		s.must(l.Release(s.Context()))
		s.wantStates(guard.AtRisk, guard.Held, guard.Released)
	})
}

func TestAGuardLeavesBeforeItReleases(t *testing.T) {
	withHints(t, func(s *fixture, told *tellingService) {
		l, err := guard.Acquire(s.Context(), told, name, s.options(guard.Options{TTL: ttl}))
		s.must(err)
		s.service.setFault(fault{delay: time.Second})
		s.must(l.Release(s.Context()))
		if sent := s.service.sentAt("release"); len(told.left) != 1 || told.left[0].After(sent[0]) || time.Now().Equal(sent[0]) {
			s.Errorf("the guard left at %v, and its release was sent at %v", told.left, sent)
		}
	})
}

func TestASessionAndItsLeasesActOnHints(t *testing.T) {
	withHints(t, func(s *fixture, told *tellingService) {
		session, err := guard.OpenSession(s.Context(), told, guard.SessionOptions{TTL: 10 * time.Minute})
		s.must(err)
		revoked, err := guard.Acquire(s.Context(), told, "a", guard.Options{Session: session})
		s.must(err)
		kept, err := guard.Acquire(s.Context(), told, "b", guard.Options{Session: session})
		s.must(err)
		if !slices.Equal(told.ended, []string{"session", "a", "b"}) {
			s.Errorf("watches %v, want the session and its leases", told.ended)
		}
		s.revokeAll("a")
		told.hintAll()
		s.wantError(revoked.Err(), lock.ErrLeaseLost)
		s.must(kept.Err())
		_, err = s.locks.RevokeSession(s.Context(), lock.RevokeSession{Ref: session.Ref(), Reason: "maintenance"})
		s.must(err)
		told.hintAll()
		s.wantError(session.Err(), lock.ErrSessionLost)
		s.wantError(kept.Err(), lock.ErrLeaseLost)
	})
}

// TestHintsForManyLeasesOfASessionAreOneSearch: the leases join the hub at once, and it gives each a hint. While the search
// for the first ones runs, the others gather.
func TestHintsForManyLeasesOfASessionAreOneSearch(t *testing.T) {
	withHints(t, func(s *fixture, told *tellingService) {
		c := &caller{Service: s.service.Service, batchTime: time.Second}
		s.service.Service = c
		session, err := guard.OpenSession(s.Context(), told, guard.SessionOptions{TTL: 10 * time.Minute})
		s.must(err)
		for n := range 50 {
			_, err := guard.Acquire(s.Context(), told, fmt.Sprintf("n:%d", n), guard.Options{Session: session})
			s.must(err)
			_, err = guard.AcquireAll(s.Context(), told, []lock.Member{{Name: fmt.Sprintf("a:%d", n)}, {Name: fmt.Sprintf("b:%d", n)}},
				guard.Options{Session: session})
			s.must(err)
		}
		revoked, err := guard.AcquireAll(s.Context(), told, []lock.Member{{Name: "a"}, {Name: "b"}}, guard.Options{Session: session})
		s.must(err)
		s.revokeAll("b")
		told.hintAll()
		time.Sleep(time.Minute)
		if n := c.batches.Load(); n < 1 || n > 2 || len(s.service.sentAt("renew")) > 0 {
			s.Errorf("%d batches and %d single renewals ask for 101 leases, want one or two batches", n, len(s.service.sentAt("renew")))
		}
		s.wantError(revoked.Err(), lock.ErrLeaseLost)
		s.must(session.Close(s.Context()))
	})
}
