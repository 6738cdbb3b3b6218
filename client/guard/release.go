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
	// lateReleaseAnswer is how long the only try may take when the lease is over.
	lateReleaseAnswer = 500 * time.Millisecond
)

// Release gives the lease up, whether ctx has ended or not, in five seconds at most; Done is
// closed at once. Stop the work before.
//
// A release that is not answered is sent again until the lease is over: its TTL and grace have
// passed since the last request that renewed it was sent. After that it is sent once, with half a
// second to be answered: an unanswered renewal may have moved the end.
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
	left := l.left()
	l.mu.Unlock()
	var err error
	if left > 0 {
		err = release(ctx, l.locks, l.granted.Name, l.granted.ID, min(left, releaseWithin))
	} else {
		err = releaseOnce(context.WithoutCancel(ctx), l.locks, lock.Release{Name: l.granted.Name, LeaseID: l.granted.ID}, lateReleaseAnswer)
	}
	if first {
		l.tellOf(Released, err)
	}
	return err
}

// left returns how long it is until the lease is over by what its holder knows: the deadline,
// the margin before the end, and the grace. It is not positive when the lease is over. The caller
// holds mu.
func (l *Lease) left() time.Duration {
	return l.deadline.Add(l.opts.Margin + l.opts.Grace).Sub(l.clock.now())
}

// release sends a release until it is answered, for that long at most.
func release(ctx context.Context, locks lock.Service, name string, id lock.LeaseID, within time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	for pauses := newPauses(); ; {
		err := releaseOnce(ctx, locks, lock.Release{Name: name, LeaseID: id}, releaseAnswer)
		if !passing(err) || !pauses.sleep(ctx, err) {
			return err
		}
	}
}

func releaseOnce(ctx context.Context, locks lock.Service, r lock.Release, answer time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	return locks.Release(ctx, r)
}

// passing is whether the same call may succeed later.
func passing(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) ||
		errors.Is(err, lock.ErrTooManyWaiters) || errors.Is(err, lock.ErrRateLimited) || errors.Is(err, lock.ErrInternal)
}
