package guard_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// observe is what an observer was told: who leads and says what, "nobody", or an
// error's code.
func observe(s *fixture, ctx context.Context, e *guard.Election) <-chan string {
	told := make(chan string, 100)
	go func() {
		defer close(told)
		for leader, err := range e.Observe(ctx) {
			switch {
			case err != nil:
				told <- string(lockError(s, err).Code)
			case leader == nil:
				told <- "nobody"
			default:
				told <- leader.Holder + " says " + leader.Value
			}
		}
	}()
	return told
}

func (s *fixture) election(holder string) *guard.Election {
	return guard.NewElection(s.service, name, guard.Options{Holder: holder})
}

func (s *fixture) wantObserved(told <-chan string, want string) {
	s.Helper()
	if got := <-told; got != want {
		s.Errorf("the observer was told %q, want %q", got, want)
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
		told := observe(s, ctx, s.election("observer"))
		s.wantObserved(told, "nobody")
		a := s.campaign(s.election("a"), "10.0.0.1")
		s.wantObserved(told, "a says 10.0.0.1")
		s.must(a.Proclaim(s.Context(), "10.0.0.2"))
		s.wantObserved(told, "a says 10.0.0.2")
		next := make(chan *guard.Term)
		go func() { next <- s.campaign(s.election("b"), "10.0.0.9") }()
		synctest.Wait()
		time.Sleep(time.Hour + time.Second) // not between two calls, when the place is passed over
		s.must(a.Resign(s.Context()))
		s.wantObserved(told, "b says 10.0.0.9")
		b := <-next
		if b.Token() <= a.Token() {
			s.Errorf("the terms are %d and %d", a.Token(), b.Token())
		}
		s.must(b.Resign(s.Context()))
		s.wantObserved(told, "nobody")
		cancel()
		if more, ok := <-told; ok {
			s.Errorf("the observer was told %q", more)
		}
	})
}

func TestAnObserverSeesALeaderExpire(t *testing.T) {
	withFixture(t, func(s *fixture) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		told := observe(s, ctx, s.election("observer"))
		s.wantObserved(told, "nobody")
		s.grantOther(lock.Acquire{TTL: ttl})
		s.wantObserved(told, "somebody else says ")
		s.wantObserved(told, "nobody")
	})
}

func TestAnObserverReportsAnOutageAndContinues(t *testing.T) {
	withFixture(t, func(s *fixture) {
		ctx, cancel := context.WithCancel(s.Context())
		defer cancel()
		g := s.grantOther(lock.Acquire{TTL: time.Hour})
		told := observe(s, ctx, s.election("observer"))
		s.wantObserved(told, "somebody else says ")
		synctest.Wait()
		s.service.setFault(fault{refuse: true})
		s.wantObserved(told, string(lock.ErrUnavailable))
		s.service.setFault(fault{})
		s.wantObserved(told, "somebody else says ")
		s.releaseOther(g)
		s.wantObserved(told, "nobody")
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
		if leader.Holder != "a" || leader.Value != "here" || leader.Term != term.Token() || leader.Since.IsZero() {
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
			s.Errorf("after that the lock is %+v", now)
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
				s.Errorf("two permits sit in the slots %d and %d", one.Slot(), two.Slot())
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
