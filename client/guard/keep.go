package guard

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// ticksOfTTL is how many instants there are in a TTL at which leases are renewed.
const ticksOfTTL = 60

// keep renews the lease whenever that is due, until it is over.
func (l *Lease) keep() {
	for {
		select {
		case <-l.due:
			l.renew()
		case <-l.over.Done():
			return
		}
	}
}

// look is what the timer calls: it notices that the deadline has come, or that a
// renewal is due.
func (l *Lease) look() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check(); l.ended() {
		return
	}
	if !l.clock.now().Before(l.renewAt) {
		l.renewAt = l.deadline // until the renewal, which goes on meanwhile, says more
		select {
		case l.due <- struct{}{}:
		default: // one is due already
		}
	}
	l.arm()
}

// arm sets the timer to the next instant at which there is something to notice. The
// caller holds mu.
func (l *Lease) arm() {
	next := l.deadline
	if l.renewAt.Before(next) {
		next = l.renewAt
	}
	l.watch.Reset(min(next.Sub(l.clock.now()), tick))
}

// renew asks once for a new end.
func (l *Lease) renew() {
	ctx, cancel := context.WithTimeout(l.over, l.patience())
	defer cancel()
	l.settle(l.ask(ctx, nil))
}

// patience is for how long a renewal may take. After one that failed it is less, so
// that many can be tried before the deadline: what swallowed one may be a connection
// that another replaces. After the next it is not, for it may have been the service
// that is slow.
func (l *Lease) patience() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures%2 == 1 {
		return min(l.opts.TTL/12, answerWithin)
	}
	return min(l.opts.TTL/6, answerWithin)
}

// ask renews the lease, with other metadata unless that is nil.
func (l *Lease) ask(ctx context.Context, metadata json.RawMessage) (lock.Grant, time.Duration, error) {
	suspended := l.clock.suspended()
	g, err := l.locks.Renew(ctx, lock.Renew{Name: l.granted.Name, LeaseID: l.granted.ID, Metadata: metadata})
	return g, suspended, err
}

// settle draws the conclusions from a renewal's outcome.
func (l *Lease) settle(g lock.Grant, suspended time.Duration, err error) {
	switch {
	case err == nil:
		l.renewed(g, suspended)
	case saysLost(err):
		l.lost(err)
	default:
		l.failed(err)
	}
}

// renewed takes the end that was granted for the lease's, and plans the next renewal.
func (l *Lease) renewed(g lock.Grant, suspended time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended() {
		return
	}
	if until := g.Until.Add(suspended - l.opts.Margin); until.After(l.deadline) {
		l.deadline = until
	}
	l.trouble, l.failures = nil, 0
	if l.state == AtRisk {
		l.state = Held
		l.tellOf(Held, nil)
	}
	now := l.clock.now()
	soon := max(l.deadline.Sub(now)/2, l.opts.TTL/30) // in good time, if little was left when the answer came
	l.renewAt = l.onTick(now.Add(jittered(min(l.opts.TTL/3, soon))))
	l.arm()
}

// jittered returns a duration a little shorter than d, so that those who began together do not
// go on together.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/5+1) }

// onTick returns the instant before at, or at, at which this process renews leases with
// that TTL: calls that are made at once can share a request. Other processes have other
// instants. It is earlier by less than a TTL through ticksOfTTL.
func (l *Lease) onTick(at time.Time) time.Time {
	return at.Add(-time.Duration(at.UnixNano()+l.phase) % (l.opts.TTL / ticksOfTTL))
}

// phase returns a number that each process has its own of, more or less.
func phase() int64 {
	h := fnv.New32a()
	h.Write([]byte(ourselves())) // which never fails
	return int64(h.Sum32())
}

// failed notes that a renewal has failed, and plans the next.
func (l *Lease) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check(); l.ended() {
		return
	}
	l.trouble = err
	l.failures++
	if l.state == Held {
		l.state = AtRisk
		l.tellOf(AtRisk, err)
	}
	l.renewAt = l.clock.now().Add(jittered(min(l.opts.TTL/30, longestPause)))
	l.arm()
}

// lost ends the lease since the service says that it has ended.
func (l *Lease) lost(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended() {
		l.finish(Lost, err)
	}
}

// saysLost is whether the service says that the lease is lost. An error of which the loss of
// another lease is the cause, since its context ended the call, does not.
func saysLost(err error) bool {
	var e *lock.Error
	return errors.As(err, &e) && e.Code == lock.ErrLeaseLost
}

// SetMetadata puts other metadata on the lease, a JSON object for all to see, and renews it. When
// the outcome is not known, the same call again finds out.
func (l *Lease) SetMetadata(ctx context.Context, metadata json.RawMessage) error {
	if err := l.Err(); err != nil {
		return err
	}
	ctx, cancel := l.Context(ctx)
	defer cancel()
	g, suspended, err := l.ask(ctx, metadata)
	if err == nil || saysLost(err) {
		l.settle(g, suspended, err) // else the renewals find out whether it is at risk
	}
	return err
}
