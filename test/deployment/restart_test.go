package deployment_test

import (
	"errors"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// TestStoppingReplicaSendsItsWaitersToAnother, where they come in random order and have kept their places.
func TestStoppingReplicaSendsItsWaitersToAnother(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	stopping, other := s.replicas[0], s.replicas[1]
	release := s.hold()
	callers := s.enqueue(20, stopping)
	stopped := time.Now()
	if code := stopping.Signal(t, syscall.SIGTERM); code != 0 || time.Since(stopped) > lock.MaxWait/5 {
		t.Errorf("exit code %d after %v", code, time.Since(stopped))
	}
	for _, i := range rand.Perm(len(callers)) {
		var refusal *lock.Error
		callers[i].expectAnswer()
		if err := callers[i].err; !errors.As(err, &refusal) || refusal.Code != lock.ErrUnavailable || refusal.RetryAfter < time.Second {
			t.Errorf("%s was answered %v", callers[i].Holder, err)
		}
		callers[i] = s.startAcquire(other, callers[i].Acquire)
		callers[i].startUsing(other)
	}
	await.Until(t, "all wait again", func() bool {
		q, err := other.Queue(t.Context(), s.name)
		s.must(err)
		n := 0
		for _, w := range q.Waiters {
			if w.Attached {
				n++
			}
		}
		return n == len(callers)
	})
	release()
	s.expectOrder(callers, verify.Rules{AllowOvertaking: true})
}
