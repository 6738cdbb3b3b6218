package guard

import (
	"context"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// ticksPerTTL is the number of ticks in a TTL. Leases are renewed at ticks.
const ticksPerTTL = 60

// leastTimeout is enough for an answer of a busy service. No renewal has a shorter timeout because the deadline is
// near.
const leastTimeout = 500 * time.Millisecond

// renewLoop renews whenever that is due, until the end.
func (l *heart) renewLoop() {
	for {
		select {
		case <-l.due:
			l.renew()
		case <-l.ctx.Done():
			return
		}
	}
}

// onTimer is called by the timer. It ends the lease at its deadline and signals due renewals.
func (l *heart) onTimer() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enforceDeadline(); l.ended() {
		return
	}
	if !l.clock.now().Before(l.renewAt) {
		l.signalRenewal()
	}
	l.resetTimer()
}

// signalRenewal signals that a renewal is due. The caller holds mu.
func (l *heart) signalRenewal() {
	l.renewAt = l.deadline // until the renewal ends and sets the next one
	select {
	case l.due <- struct{}{}:
	default: // already signaled
	}
}

// resetTimer sets the timer to the next renewal or the deadline. The caller holds mu.
func (l *heart) resetTimer() {
	next := l.deadline
	if l.renewAt.Before(next) {
		next = l.renewAt
	}
	l.timer.Reset(min(next.Sub(l.clock.now()), maxTimerInterval))
}

// renew sends one renewal and applies its result.
func (l *heart) renew() {
	l.mu.Lock()
	timeout := l.timeout
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	suspended := l.clock.suspended()
	until, err := l.sendRenewal(ctx)
	l.applyResult(until, suspended, err)
}

// setTimeout sets the timeout of the next renewal, which is sent by that time: long after an even number of failures,
// for a slow service; short after an odd number, so that a dead connection leaves time for more attempts. While there
// is time for another attempt, none takes more than half of what is left of the lease. The caller holds mu.
func (l *heart) setTimeout(sentBy time.Time) {
	timeout := l.opts.TTL / 6
	if l.failures%2 == 1 {
		timeout = l.opts.TTL / 12
	}
	half := l.deadline.Sub(sentBy) / 2
	l.timeout = min(timeout, answerTimeout, max(half, l.opts.TTL/30, leastTimeout))
}

// applyResult updates the lease after a renewal. suspended is the clock's suspended time when it was sent, and until
// is on the clock of package time.
func (l *heart) applyResult(until time.Time, suspended time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended() {
		return
	}
	l.observeRenewal(err)
	switch {
	case err == nil:
		l.applyRenewal(until, suspended)
	case isCode(err, l.lost):
		l.lose(err, suspended)
	default:
		l.applyFailure(err)
	}
}

// applyRenewal moves the deadline and schedules the next renewal. The caller holds mu.
func (l *heart) applyRenewal(until time.Time, suspended time.Duration) {
	if deadline := until.Add(suspended - l.opts.Margin); deadline.After(l.deadline) {
		l.deadline = deadline
	}
	l.lastErr, l.failures = nil, 0
	if l.state == AtRisk {
		l.state = Held
		l.notify(Held, nil)
	}
	now := l.clock.now()
	soon := max(l.deadline.Sub(now)/2, 0) // if little time was left when the answer came
	if l.opts.MaxHold > 0 {
		soon = max(soon, l.opts.TTL/30) // shortly before its end no renewal extends the lease
	}
	pause := min(l.opts.TTL/3, soon)
	l.renewAt = l.alignToTick(now.Add(jittered(pause)))
	l.setTimeout(now.Add(pause))
	l.resetTimer()
}

// jittered returns a random duration of 80 to 100 % of d, so that processes that started together
// do not renew together.
func jittered(d time.Duration) time.Duration { return d - rand.N(d/5+1) }

// alignToTick returns the last tick of this process up to the time at. Renewals at the same tick can
// share a request. Other processes have other ticks.
func (l *heart) alignToTick(at time.Time) time.Time {
	return at.Add(-time.Duration(at.UnixNano()+l.phase) % (l.opts.TTL / ticksPerTTL))
}

// processPhase returns a hash that usually differs between processes.
func processPhase() int64 {
	h := fnv.New32a()
	h.Write([]byte(defaultHolder())) // Write never fails
	return int64(h.Sum32())
}

// applyFailure puts the lease at risk and schedules the next attempt. The caller holds mu.
func (l *heart) applyFailure(err error) {
	if l.enforceDeadline(); l.ended() {
		return
	}
	l.lastErr = err
	l.failures++
	if l.state == Held {
		l.state = AtRisk
		l.notify(AtRisk, err)
		l.opts.Observer.AtRisk(l.name, err)
	}
	now, pause := l.clock.now(), min(l.opts.TTL/30, maxBackoff)
	l.renewAt = now.Add(jittered(pause))
	l.setTimeout(now.Add(pause))
	l.resetTimer()
}

// isCode reports whether the service refused with the code. errors.Is would not do: the cause of a canceled call may
// be the loss of another lease.
func isCode(err error, code lock.Code) bool {
	var e *lock.Error
	return errors.As(err, &e) && e.Code == code
}

// A clock measures time including suspensions of the machine. Go's monotonic clock stops during a
// suspension, but leases do not.
type clock struct {
	// suspended returns how long the machine has been suspended since a fixed time in the past.
	suspended func() time.Duration
}

func newClock() clock { return clock{suspended: suspendedFunc()} }

// now returns the time on this clock. It can be compared only with other times of this clock.
func (c clock) now() time.Time { return time.Now().Add(c.suspended()) }

// maxTimerInterval bounds the timer of a Lease, because the runtime's timers do not include
// suspensions either.
const maxTimerInterval = time.Second
