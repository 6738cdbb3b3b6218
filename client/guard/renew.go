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

// ticksPerTTL is how many instants there are in a TTL at which leases are renewed.
const ticksPerTTL = 60

// renewLoop renews the lease whenever that is due, until it is over.
func (l *Lease) renewLoop() {
	for {
		select {
		case <-l.due:
			l.renew()
		case <-l.ctx.Done():
			return
		}
	}
}

// onTimer is what the timer calls: it notices that the deadline has come, or that a
// renewal is due.
func (l *Lease) onTimer() {
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
	l.resetTimer()
}

// resetTimer sets the timer to the next instant at which there is something to notice. The
// caller holds mu.
func (l *Lease) resetTimer() {
	next := l.deadline
	if l.renewAt.Before(next) {
		next = l.renewAt
	}
	l.timer.Reset(min(next.Sub(l.clock.now()), maxTimerInterval))
}

// renew asks once for a new end.
func (l *Lease) renew() {
	ctx, cancel := context.WithTimeout(l.ctx, l.renewTimeout())
	defer cancel()
	l.applyResult(l.sendRenew(ctx, nil))
}

// renewTimeout is for how long a renewal may take. After one that failed it is less, so
// that many can be tried before the deadline: what swallowed one may be a connection
// that another replaces. After the next it is not, for it may have been the service
// that is slow.
func (l *Lease) renewTimeout() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures%2 == 1 {
		return min(l.opts.TTL/12, answerTimeout)
	}
	return min(l.opts.TTL/6, answerTimeout)
}

// sendRenew renews the lease, with other metadata unless that is nil.
func (l *Lease) sendRenew(ctx context.Context, metadata json.RawMessage) (lock.Grant, time.Duration, error) {
	suspended := l.clock.suspended()
	g, err := l.locks.Renew(ctx, lock.Renew{Name: l.granted.Name, LeaseID: l.granted.ID, Metadata: metadata})
	return g, suspended, err
}

// applyResult draws the conclusions from a renewal's outcome.
func (l *Lease) applyResult(g lock.Grant, suspended time.Duration, err error) {
	switch {
	case err == nil:
		l.applyRenewal(g, suspended)
	case isLeaseLost(err):
		l.applyLoss(err)
	default:
		l.applyFailure(err)
	}
}

// applyRenewal takes the end that was granted for the lease's, and plans the next renewal.
func (l *Lease) applyRenewal(g lock.Grant, suspended time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended() {
		return
	}
	if until := g.Until.Add(suspended - l.opts.Margin); until.After(l.deadline) {
		l.deadline = until
	}
	l.lastErr, l.failures = nil, 0
	if l.state == AtRisk {
		l.state = Held
		l.notify(Held, nil)
	}
	now := l.clock.now()
	soon := max(l.deadline.Sub(now)/2, l.opts.TTL/30) // in good time, if little was left when the answer came
	l.renewAt = l.alignToTick(now.Add(jittered(min(l.opts.TTL/3, soon))))
	l.resetTimer()
}

// jittered returns a duration a little shorter than d, so that those who began together do not
// go on together.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/5+1) }

// alignToTick returns the instant before at, or at, at which this process renews leases with
// that TTL: calls that are made at once can share a request. Other processes have other
// instants. It is earlier by less than a TTL through ticksOfTTL.
func (l *Lease) alignToTick(at time.Time) time.Time {
	return at.Add(-time.Duration(at.UnixNano()+l.phase) % (l.opts.TTL / ticksPerTTL))
}

// processPhase returns a number that each process has its own of, more or less.
func processPhase() int64 {
	h := fnv.New32a()
	h.Write([]byte(defaultHolder())) // which never fails
	return int64(h.Sum32())
}

// applyFailure notes that a renewal has applyFailure, and plans the next.
func (l *Lease) applyFailure(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.check(); l.ended() {
		return
	}
	l.lastErr = err
	l.failures++
	if l.state == Held {
		l.state = AtRisk
		l.notify(AtRisk, err)
	}
	l.renewAt = l.clock.now().Add(jittered(min(l.opts.TTL/30, maxBackoff)))
	l.resetTimer()
}

// applyLoss ends the lease since the service says that it has ended.
func (l *Lease) applyLoss(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended() {
		l.finish(Lost, err)
	}
}

// isLeaseLost is whether the service says that the lease is lost. An error of which the loss of
// another lease is the cause, since its context ended the call, does not.
func isLeaseLost(err error) bool {
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
	g, suspended, err := l.sendRenew(ctx, metadata)
	if err == nil || isLeaseLost(err) {
		l.applyResult(g, suspended, err) // else the renewals find out whether it is at risk
	}
	return err
}
