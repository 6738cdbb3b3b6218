package guard_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// observe returns what an observer yields: the leader and its value, "no leader", or an error's code.
func observe(s *fixture, ctx context.Context, e *guard.Election) <-chan string {
	yields := make(chan string, 100)
	go func() {
		defer close(yields)
		for leader, err := range e.Observe(ctx) {
			switch {
			case err != nil:
				yields <- string(lockError(s, err).Code)
			case leader == nil:
				yields <- "no leader"
			default:
				yields <- leader.Holder + " publishes " + leader.Value
			}
		}
	}()
	return yields
}

func (s *fixture) election(holder string) *guard.Election {
	return guard.NewElection(s.service, name, guard.Options{Holder: holder})
}

func (s *fixture) wantObserved(yields <-chan string, want string) {
	s.Helper()
	if got := <-yields; got != want {
		s.Errorf("the observer yields %q, want %q", got, want)
	}
}

func (s *fixture) campaign(e *guard.Election, value string) *guard.Term {
	s.Helper()
	term, err := e.Campaign(s.Context(), value)
	s.must(err)
	return term
}

func TestAnElectionIsObserved(t *testing.T) {
	withFixture(t, func(s *fixture) {
		ctx, cancel := context.WithCancel(s.Context())
		yields := observe(s, ctx, s.election("observer"))
		s.wantObserved(yields, "no leader")
		a := s.campaign(s.election("a"), "10.0.0.1")
		s.wantObserved(yields, "a publishes 10.0.0.1")
		s.must(a.Proclaim(s.Context(), "10.0.0.2"))
		s.wantObserved(yields, "a publishes 10.0.0.2")
		next := make(chan *guard.Term)
		go func() { next <- s.campaign(s.election("b"), "10.0.0.9") }()
		synctest.Wait()
		time.Sleep(time.Hour + time.Second) // not between two calls, where a place is skipped
		s.must(a.Resign(s.Context()))
		s.wantObserved(yields, "b publishes 10.0.0.9")
		b := <-next
		if b.Token() <= a.Token() {
			s.Errorf("the terms are %d and %d", a.Token(), b.Token())
		}
		s.must(b.Resign(s.Context()))
		s.wantObserved(yields, "no leader")
		cancel()
		if more, ok := <-yields; ok {
			s.Errorf("the observer also yields %q", more)
		}
	})
}

func TestAnObserverReportsAnOutageAndContinues(t *testing.T) {
	withFixture(t, func(s *fixture) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		g := s.grantOther(lock.Acquire{TTL: time.Hour})
		yields := observe(s, ctx, s.election("observer"))
		s.wantObserved(yields, "another client publishes ")
		synctest.Wait()
		s.service.setFault(fault{refuse: true})
		s.wantObserved(yields, string(lock.ErrUnavailable))
		s.service.setFault(fault{})
		s.wantObserved(yields, "another client publishes ")
		s.releaseOther(g)
		s.wantObserved(yields, "no leader")
	})
}

func TestTheLeaderIsTheHolderOfTheLock(t *testing.T) {
	withFixture(t, func(s *fixture) {
		e := s.election("a")
		if leader, err := e.Leader(s.Context()); leader != nil || err != nil {
			s.Errorf("before the election: %+v, %v", leader, err)
		}
		term := s.campaign(e, "here")
		leader, err := e.Leader(s.Context())
		s.must(err)
		if leader.Holder != "a" || leader.Value != "here" || leader.Token != term.Token() || leader.Since.IsZero() {
			s.Errorf("the leader is %+v", leader)
		}
		s.must(term.Resign(s.Context()))
	})
}

func TestACanceledCampaignLeavesNoCandidate(t *testing.T) {
	withFixture(t, func(s *fixture) {
		term := s.campaign(s.election("a"), "")
		ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		_, err := s.election("b").Campaign(ctx, "")
		s.wantError(err, context.DeadlineExceeded)
		s.must(term.Resign(s.Context()))
		if now := s.lockNow(); now.State != lock.Free || now.Waiters != 0 {
			s.Errorf("after the resignation the lock is %+v", now)
		}
	})
}

func TestALeaderValueIsBounded(t *testing.T) {
	withFixture(t, func(s *fixture) {
		_, err := s.election("a").Campaign(s.Context(), string(make([]byte, lock.MaxMetadataSize)))
		s.wantError(err, lock.ErrInvalid)
		term := s.campaign(s.election("a"), "")
		s.wantError(term.Proclaim(s.Context(), string(make([]byte, lock.MaxMetadataSize))), lock.ErrInvalid)
		s.must(term.Resign(s.Context()))
		s.wantError(term.Proclaim(s.Context(), "too late"), guard.ErrReleased)
	})
}

func TestASemaphoreGrantsUpToItsCapacity(t *testing.T) {
	withFixture(t, func(s *fixture) {
		sem := guard.NewSemaphore(s.service, name, 2, guard.Options{})
		one, err := sem.Acquire(s.Context())
		s.must(err)
		s.must(sem.Do(s.Context(), func(_ context.Context, two *guard.Lease) error {
			if one.Slot() == two.Slot() || one.Token() == two.Token() {
				s.Errorf("two permits have the slots %d and %d", one.Slot(), two.Slot())
			}
			_, err := sem.Acquire(s.Context())
			s.wantError(err, lock.ErrHeld)
			return nil
		}))
		_, err = guard.NewSemaphore(s.service, name, 3, guard.Options{}).Acquire(s.Context())
		s.wantError(err, lock.ErrCapacityMismatch)
		s.must(one.Release(s.Context()))
	})
}

func TestReadersShareAndWritersExclude(t *testing.T) {
	withFixture(t, func(s *fixture) {
		rw := guard.NewRWLock(s.service, name, guard.Options{})
		reader, err := rw.Read(s.Context())
		s.must(err)
		s.must(rw.DoRead(s.Context(), func(_ context.Context, other *guard.Lease) error {
			if other.Token() != reader.Token() {
				s.Errorf("readers have the tokens %d and %d", reader.Token(), other.Token())
			}
			_, err := rw.Write(s.Context())
			s.wantError(err, lock.ErrHeld)
			return nil
		}))
		s.must(reader.Release(s.Context()))
		s.must(rw.DoWrite(s.Context(), func(context.Context, *guard.Lease) error {
			_, err := rw.Read(s.Context())
			s.wantError(err, lock.ErrHeld)
			return nil
		}))
	})
}
