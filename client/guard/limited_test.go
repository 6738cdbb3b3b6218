package guard_test

import (
	"context"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// A limiter is a service that refuses the first calls of an acquire so.
type limiter struct {
	lock.Service
	code  lock.Code
	first int
	sent  int
}

func (l *limiter) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if l.sent++; l.sent <= l.first {
		return lock.Grant{}, &lock.Error{Code: l.code, RetryAfter: 500 * time.Millisecond}
	}
	return l.Service.Acquire(ctx, a)
}

func TestWhoIsToSlowDownComesAgain(t *testing.T) {
	play(t, func(s *scene) {
		begun := time.Now()
		limited := &limiter{Service: s.locks, code: lock.ErrRateLimited, first: 3}
		l, err := guard.Acquire(s.Context(), limited, name, guard.Options{})
		s.must(err)
		if took := time.Since(begun); took < 1500*time.Millisecond || limited.sent != 4 {
			s.Errorf("it had the lock after %v and %d calls", took, limited.sent)
		}
		s.must(l.Release(s.Context()))
	})
}

func TestABadKeyIsNotTriedAgain(t *testing.T) {
	for _, code := range []lock.Code{lock.ErrKeyMissing, lock.ErrKeyInvalid, lock.ErrKeyExpired, lock.ErrRoleMissing, lock.ErrNameNotAllowed} {
		t.Run(string(code), func(t *testing.T) {
			play(t, func(s *scene) {
				refused := &limiter{Service: s.locks, code: code, first: 1}
				_, err := guard.Acquire(s.Context(), refused, name, guard.Options{Wait: time.Minute})
				s.is(err, code)
				if refused.sent != 1 {
					s.Errorf("it was sent %d times", refused.sent)
				}
			})
		})
	}
}
