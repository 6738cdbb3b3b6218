package guard_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// unansweredReleases are faults that leave a release unanswered, and how long one attempt then takes
// after the end of the lease.
var unansweredReleases = map[string]struct {
	fault  fault
	atMost time.Duration
}{
	"refused": {fault{refuse: true}, 0},
	"lost":    {fault{blackHole: true}, 500 * time.Millisecond},
}

func TestAReleaseAfterExpiryIsSentOnce(t *testing.T) {
	for what, u := range unansweredReleases {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				l := s.acquire(guard.Options{Margin: 2 * time.Second, Grace: 3 * time.Second})
				s.service.setFault(u.fault)
				<-l.Done()
				time.Sleep(5 * time.Second) // the margin and the grace
				before, begun := len(s.service.sentAt("release")), time.Now()
				if err := l.Release(s.Context()); err == nil {
					s.Error("an unanswered release succeeded")
				}
				if sent := len(s.service.sentAt("release")) - before; sent != 1 {
					s.Errorf("the release was sent %d times, want once", sent)
				}
				if took := time.Since(begun); took > u.atMost {
					s.Errorf("the release took %v, want %v at most", took, u.atMost)
				}
			})
		})
	}
}

func TestAReleaseIsRetriedUntilTheLeaseExpires(t *testing.T) {
	for what, u := range unansweredReleases {
		t.Run(what, func(t *testing.T) {
			withFixture(t, func(s *fixture) {
				begun := time.Now()
				l := s.acquire(guard.Options{Margin: time.Second, Grace: 2 * time.Second})
				over := begun.Add(ttl + 2*time.Second)
				s.service.setFault(u.fault)
				<-l.Done()
				if err := l.Release(s.Context()); err == nil {
					s.Error("an unanswered release succeeded")
				}
				sent := s.service.sentAt("release")
				if len(sent) < 2 || sent[len(sent)-1].After(over) {
					s.Errorf("the lease ended at %v, and the release was sent at %v", over, sent)
				}
				if end := over.Add(u.atMost); time.Now().After(end) {
					s.Errorf("the release was given up at %v, want %v or before", time.Now(), end)
				}
			})
		})
	}
}

// TestAReleaseAfterExpiryFreesALeaseThatALostRenewalExtended loses the answers of renewals, so that the
// service keeps the lease longer than its holder knows.
func TestAReleaseAfterExpiryFreesALeaseThatALostRenewalExtended(t *testing.T) {
	withFixture(t, func(s *fixture) {
		l := s.acquire(guard.Options{})
		s.service.setFault(fault{loseAnswer: true})
		<-l.Done()
		time.Sleep(ttl / 10)
		s.service.setFault(fault{})
		s.must(l.Release(s.Context()))
		s.wantEvents(lock.Granted, lock.Released)
	})
}
