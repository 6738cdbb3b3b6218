package guard

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// releaseWithin is for how long a release is tried.
	releaseWithin = 5 * time.Second
	// releaseAnswer is how long one try of it may take.
	releaseAnswer = 2 * time.Second
)

// Release gives the lease up, whether ctx has ended or not, in five seconds at most; Done is
// closed at once. Stop the work before.
//
// It returns nil if the lease was ours until now, lock.ErrLeaseLost if it had ended
// otherwise: then the work may have overlapped with another's. Any other error says
// that nobody answered; the lease ends with its TTL then. It may be called again, and
// after a loss: that frees the lock for others sooner.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	first := !l.ended()
	if first {
		l.finish(Released, ErrReleased)
	}
	l.mu.Unlock()
	err := release(ctx, l.locks, l.granted.Name, l.granted.ID, releaseWithin)
	if first {
		l.tellOf(Released, err)
	}
	return err
}

// release sends a release until it is answered, for that long at most.
func release(ctx context.Context, locks lock.Service, name string, id lock.LeaseID, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	for pauses := newPauses(); ; {
		err := releaseOnce(ctx, locks, lock.Release{Name: name, LeaseID: id})
		if !passing(err) || !pauses.sleep(ctx, err) {
			return err
		}
	}
}

func releaseOnce(ctx context.Context, locks lock.Service, r lock.Release) error {
	ctx, cancel := context.WithTimeout(ctx, releaseAnswer)
	defer cancel()
	return locks.Release(ctx, r)
}

// passing is whether the same call may succeed later.
func passing(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) ||
		errors.Is(err, lock.ErrTooManyWaiters) || errors.Is(err, lock.ErrRateLimited) || errors.Is(err, lock.ErrInternal)
}
