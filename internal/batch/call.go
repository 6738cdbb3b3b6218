package batch

import (
	"context"
	"sync/atomic"
)

// A Call is one request on its way to an answer. Make one with NewCall.
type Call[Req, Res any] struct {
	Req Req

	state     atomic.Int32
	answered  chan struct{} // closed by Answer, or when the call is handed back
	res       Res
	err       error
	canInline bool // made by TryInline
	slot      slot // held by the caller after handBack
}

// The states of a call. A pending call that is canceled is never run. A call that is
// canceled after it began becomes canceled only if it is rewound.
const (
	pending int32 = iota
	begun
	begunCanceled
	canceled
	handedBack
)

// NewCall returns a call for the request.
func NewCall[Req, Res any](req Req) *Call[Req, Res] {
	return &Call[Req, Res]{Req: req, answered: make(chan struct{})}
}

// Begin marks the call as one that may take effect from now on. It returns false if the
// call was canceled before; then the call must not be run.
func (c *Call[Req, Res]) Begin() bool {
	return c.state.CompareAndSwap(pending, begun) || c.state.Load() != canceled
}

// Rewind undoes Begin. The runner must be certain that the call had no effect.
func (c *Call[Req, Res]) Rewind() {
	if !c.state.CompareAndSwap(begun, pending) {
		c.state.CompareAndSwap(begunCanceled, canceled)
	}
}

// Answer sets the result and wakes the caller. It must be called at most once.
func (c *Call[Req, Res]) Answer(res Res, err error) {
	c.res, c.err = res, err
	close(c.answered)
}

// Wait returns the call's answer. If ctx ends first, Wait cancels the call and returns a
// *CanceledError.
func (c *Call[Req, Res]) Wait(ctx context.Context) (Res, error) {
	select {
	case <-c.answered:
		return c.res, c.err
	case <-ctx.Done():
		return c.cancel(context.Cause(ctx))
	}
}

// HandBack makes the caller run the call with RunInline, without a slot, unless it was
// canceled. The call must come from TryInline. A call that has begun may be run again.
// The runner calls HandBack instead of Answer.
func (c *Call[Req, Res]) HandBack() { c.handBack(slot{}) }

// handBack makes the caller run the call inline in the slot. It returns false if the call
// was canceled.
func (c *Call[Req, Res]) handBack(s slot) bool {
	if !c.state.CompareAndSwap(pending, handedBack) && !c.state.CompareAndSwap(begun, handedBack) {
		return false
	}
	c.slot = s
	close(c.answered)
	return true
}

// isHandedBack reports whether the caller must run the call. It is valid after answered is closed.
func (c *Call[Req, Res]) isHandedBack() bool { return c.state.Load() == handedBack }

// cancel cancels the call, or returns the answer if there already is one.
func (c *Call[Req, Res]) cancel(cause error) (Res, error) {
	started := !c.state.CompareAndSwap(pending, canceled)
	if started {
		c.state.CompareAndSwap(begun, begunCanceled)
	}
	if c.isHandedBack() {
		<-c.answered
	}
	select {
	case <-c.answered:
		return c.res, c.err
	default:
		var none Res
		return none, &CanceledError{Started: started, Cause: cause}
	}
}

// A CanceledError is returned when the caller's context ended before the answer came.
type CanceledError struct {
	Started bool  // the call may have taken effect, or still may
	Cause   error // why the caller's context ended
}

// Error returns the cause and whether the call had begun.
func (a *CanceledError) Error() string {
	if a.Started {
		return "canceled after it began: " + a.Cause.Error()
	}
	return "canceled before it began: " + a.Cause.Error()
}

// Unwrap returns the cause.
func (a *CanceledError) Unwrap() error { return a.Cause }
