package guard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A heart keeps a lease or a session alive by renewals until it is released or lost, or it follows the heart of a
// session.
type heart struct {
	name  string     // for the Observer
	what  string     // for error messages
	lost  lock.Code  // of a loss
	token lock.Token // of the lease
	opts  Options
	clock clock
	stateNotifier
	sendRenewal func(context.Context) (until time.Time, err error) // sends a renewal
	follows     *heart                                             // of the session that keeps the lease alive; nil for none
	watchEnd    func(hint func()) (leave func())                   // begins to hear of the end; nil for a service that does not tell

	ctx   context.Context
	end   context.CancelCauseFunc // ends ctx
	due   chan struct{}           // signals that a renewal is due
	phase int64                   // offset of this process's renewals, in ns

	acquiredAt time.Time // on the clock

	mu        sync.Mutex
	state     State
	deadline  time.Time // on the clock; it is lost from then on. Zero for one that follows and has no end of its own
	renewAt   time.Time // on the clock
	graceEnds time.Time // on the clock, of a lease that the service has reported as lost; past if it has no grace
	timer     *time.Timer
	lastErr   error         // of the last renewal, nil if it succeeded
	failures  int           // of consecutive renewals
	timeout   time.Duration // of the next renewal
	leave     func()        // ends what watchEnd has begun; may be nil
}

// start begins the renewals of what was granted until then. suspended is the clock's suspended time when that was
// requested.
func (l *heart) start(ctx context.Context, until time.Time, suspended time.Duration) {
	l.due, l.phase, l.state = make(chan struct{}, 1), processPhase(), Held
	l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	l.deadline = until.Add(suspended - l.opts.Margin)
	l.acquiredAt = l.clock.now()
	l.mu.Lock()
	l.timer = time.AfterFunc(maxTimerInterval, l.onTimer) // onTimer waits for mu
	l.applyRenewal(until, suspended)
	if !l.ended() {
		l.hear(l.renewNow)
	}
	l.mu.Unlock()
	go l.renewLoop()
}

// hear makes the service call hint when the lease or the session may have ended. The caller holds mu.
func (l *heart) hear(hint func()) {
	if l.watchEnd != nil {
		l.leave = l.watchEnd(hint)
	}
}

// renewNow makes a renewal due: it finds out whether the lease or the session has ended.
func (l *heart) renewNow() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended() {
		return
	}
	l.setTimeout(l.clock.now())
	l.signalRenewal()
	l.resetTimer()
}

// follow makes the lease end when the session does, or by itself at maxHold on the clock of package time, unless that
// is zero. hint is called when the lease may have been revoked. The function that it returns must be called at the end
// of the lease.
func (l *heart) follow(
	ctx context.Context, session *heart, maxHold time.Time, suspended time.Duration, hint func(),
) (leave func() bool) {
	l.state, l.follows, l.acquiredAt = Held, session, l.clock.now()
	l.ctx, l.end = context.WithCancelCause(context.WithoutCancel(ctx))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hear(hint)
	if !maxHold.IsZero() {
		l.deadline = maxHold.Add(suspended - l.opts.Margin)
		l.renewAt = l.deadline
		l.timer = time.AfterFunc(maxTimerInterval, l.onTimer)
		l.resetTimer()
	}
	return context.AfterFunc(session.ctx, func() { _ = l.Err() }) // which ends it
}

// Deadline returns the time, on the clock of package time, at which the lease or session counts as lost unless
// it is renewed before. Each renewal moves it.
func (l *heart) Deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := l.deadline.Add(-l.clock.suspended())
	if l.follows == nil {
		return own
	}
	if session := l.follows.Deadline(); l.deadline.IsZero() || session.Before(own) {
		return session
	}
	return own
}

// GraceEnds returns the time, on the clock of package time, until which the grace of a revoked lease or session still
// keeps other clients out. It counts from when the request was sent that found the revocation. It has passed if there is no
// such grace.
func (l *heart) GraceEnds() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.graceEnds.Add(-l.clock.suspended())
}

// Done returns a channel that is closed when the lease or session is lost or released.
func (l *heart) Done() <-chan struct{} { return l.ctx.Done() }

// Err returns nil while the lease or session is held or at risk. Afterwards it returns an error that is
// lock.ErrLeaseLost or lock.ErrSessionLost, or ErrReleased. It compares the clock with the deadline, so it does not
// depend on timers.
func (l *heart) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enforceDeadline()
	return context.Cause(l.ctx)
}

// State returns the state of the lease or session.
func (l *heart) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.enforceDeadline(); l.follows != nil && l.state == Held && l.follows.State() == AtRisk {
		return AtRisk
	}
	return l.state
}

// ended reports whether the lease or session is lost or released. The caller holds mu.
func (l *heart) ended() bool { return l.state == Lost || l.state == Released }

// enforceDeadline ends the lease or session if its deadline has passed, or the lease's session has ended. The caller
// holds mu.
func (l *heart) enforceDeadline() {
	if l.ended() {
		return
	}
	if l.follows != nil {
		if err := l.follows.Err(); err != nil {
			l.graceEnds = l.follows.GraceEnds().Add(l.clock.suspended())
			l.finish(Lost, l.lostWith(err))
			return
		}
	}
	if !l.deadline.IsZero() && !l.clock.now().Before(l.deadline) {
		l.finish(Lost, l.deadlineError())
	}
}

// finish ends the lease or session, and its contexts. The caller holds mu.
func (l *heart) finish(s State, err error) {
	l.state = s
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.leave != nil {
		l.leave()
	}
	l.end(err)
	if s == Lost {
		l.notify(s, err)
		l.opts.Observer.Lost(l.name, err)
	}
}

// loseIfLost ends the lease or session if err says that the service has lost it. suspended is the clock's suspended time
// when the request was sent.
func (l *heart) loseIfLost(err error, suspended time.Duration) {
	if !isCode(err, l.lost) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended() {
		l.lose(err, suspended)
	}
}

// lose ends the lease or session because the service has lost it. The caller holds mu.
func (l *heart) lose(err error, suspended time.Duration) {
	if e := (*lock.Error)(nil); errors.As(err, &e) {
		l.graceEnds = time.Now().Add(e.GraceLeft + suspended)
	}
	l.finish(Lost, err)
}

// notify calls OnState in another goroutine.
func (l *heart) notify(s State, err error) {
	l.enqueue(stateChange{s, err})
	go l.deliver()
}

// textOnly returns an error with the text of err that does not wrap it: a loss must not match
// lock.ErrUnavailable because an outage led to it.
func textOnly(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(err.Error())
}

// deadlineError returns the error when the deadline was reached. The caller holds mu.
func (l *heart) deadlineError() error {
	why := "the process was paused or the machine was suspended for too long"
	switch {
	case l.lastErr != nil:
		why = fmt.Sprintf("its renewals failed, the last one with %q", l.lastErr.Error())
	case l.opts.MaxHold > 0:
		why = "it reached its MaxHold"
	}
	text := fmt.Sprintf("The %s ends in %v or has ended: %s. Stop the work. To continue, %s.", l.what, l.opts.Margin, why, l.remedy())
	if l.opts.Stays {
		text = fmt.Sprintf("The %s was not renewed in time: %s. Stop the work. The lock becomes suspect: no other client is granted it "+
			"until an operator has looked at the work and revokes the lease.", l.what, why)
	}
	return &lock.Error{Code: l.lost, Token: l.token, Cause: textOnly(l.lastErr), Detail: text}
}

// lostWith returns the error of a lease whose session has ended with err.
func (l *heart) lostWith(err error) error {
	return &lock.Error{Code: l.lost, Token: l.token, Cause: err, Detail: fmt.Sprintf(
		"The %s ends with its session, which is lost or closed. Stop the work. To continue, open a session, %s.", l.what, l.remedy())}
}

func (l *heart) remedy() string {
	if l.lost == lock.ErrSessionLost {
		return "open a session again and acquire its locks"
	}
	return "acquire the lock again and use the new token"
}

// remaining returns the time until the lease or session and its grace end, as far as this process knows. It is
// zero or negative afterwards. The caller holds mu.
func (l *heart) remaining() time.Duration {
	if l.follows == nil {
		return l.deadline.Add(l.opts.Margin + l.opts.Grace).Sub(l.clock.now())
	}
	l.follows.mu.Lock()
	left := l.follows.remaining()
	l.follows.mu.Unlock()
	if !l.deadline.IsZero() {
		left = min(left, l.deadline.Add(l.opts.Margin+l.follows.opts.Grace).Sub(l.clock.now()))
	}
	return left
}

const (
	// releaseTimeout bounds a release or a close with its retries.
	releaseTimeout = 5 * time.Second
	// releaseCallTimeout bounds each attempt.
	releaseCallTimeout = 2 * time.Second
	// lateReleaseTimeout bounds the only attempt after the end of the lease.
	lateReleaseTimeout = 500 * time.Millisecond
)

// release ends the lease or session here, and then at the service by send, see Lease.Release.
func (l *heart) release(ctx context.Context, send func(context.Context) error) error {
	l.mu.Lock()
	first := !l.ended()
	if first {
		l.finish(Released, ErrReleased)
	}
	left := l.remaining()
	l.mu.Unlock()
	var err error
	if left > 0 {
		err = untilAnswered(ctx, send, min(left, releaseTimeout))
	} else {
		err = once(context.WithoutCancel(ctx), send, lateReleaseTimeout)
	}
	if first {
		l.notify(Released, err)
		l.opts.Observer.Released(l.name, l.clock.now().Sub(l.acquiredAt), err)
	}
	return err
}

// untilAnswered repeats the call until it is answered or the timeout has passed.
func untilAnswered(ctx context.Context, send func(context.Context) error, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for pauses := newRetryBackoff(); ; {
		err := once(ctx, send, releaseCallTimeout)
		if !isTransient(err) || !pauses.sleep(ctx, err) {
			return err
		}
	}
}

func once(ctx context.Context, send func(context.Context) error, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return send(ctx)
}
