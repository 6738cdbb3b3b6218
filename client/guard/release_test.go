package guard_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// unanswered are the ways in which a release gets no answer, and how long one try then takes at
// most when the lease is over.
var unanswered = map[string]struct {
	fault  fault
	atMost time.Duration
}{
	"refused":   {fault{refuses: true}, 0},
	"swallowed": {fault{swallows: true}, 500 * time.Millisecond},
}

func TestAReleaseAfterTheEndIsSentOnce(t *testing.T) {
	for what, u := range unanswered {
		t.Run(what, func(t *testing.T) {
			play(t, func(s *scene) {
				l := s.acquired(guard.Options{Margin: 2 * time.Second, Grace: 3 * time.Second})
				s.line.fail(u.fault)
				<-l.Done()
				time.Sleep(5 * time.Second) // the margin and the grace
				before, begun := len(s.line.made("release")), time.Now()
				if err := l.Release(s.Context()); err == nil {
					s.Error("an unanswered release has succeeded")
				}
				if sent := len(s.line.made("release")) - before; sent != 1 {
					s.Errorf("it was sent %d times, want once", sent)
				}
				if took := time.Since(begun); took > u.atMost {
					s.Errorf("it took %v, want %v at most", took, u.atMost)
				}
			})
		})
	}
}

func TestAReleaseIsRetriedUntilTheLeaseIsOver(t *testing.T) {
	for what, u := range unanswered {
		t.Run(what, func(t *testing.T) {
			play(t, func(s *scene) {
				begun := time.Now()
				l := s.acquired(guard.Options{Margin: time.Second, Grace: 2 * time.Second})
				over := begun.Add(ttl + 2*time.Second)
				s.line.fail(u.fault)
				<-l.Done()
				if err := l.Release(s.Context()); err == nil {
					s.Error("an unanswered release has succeeded")
				}
				sent := s.line.made("release")
				if len(sent) < 2 || sent[len(sent)-1].After(over) {
					s.Errorf("the lease was over at %v, and the release was sent at %v", over, sent)
				}
				if end := over.Add(u.atMost); time.Now().After(end) {
					s.Errorf("it was given up at %v, want %v or before", time.Now(), end)
				}
			})
		})
	}
}

// TestAReleaseAfterTheEndFindsTheLeaseThatARenewalKept has the answers of the renewals get lost, so
// that the service keeps the lease for longer than its holder knows.
func TestAReleaseAfterTheEndFindsTheLeaseThatARenewalKept(t *testing.T) {
	play(t, func(s *scene) {
		l := s.acquired(guard.Options{})
		s.line.fail(fault{deaf: true})
		<-l.Done()
		time.Sleep(ttl / 10)
		s.line.fail(fault{})
		s.must(l.Release(s.Context()))
		s.happened(lock.Granted, lock.Released)
	})
}
