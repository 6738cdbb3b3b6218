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
	canInline bool // its caller can do it alone
	slot      slot // with which it was handed back
}

// The states of a call. Only a call that waits can be left for good; one that was
// left after it began is, should it be rewound.
const (
	pending int32 = iota
	begun
	begunCanceled
	canceled
	handedBack
)

// NewCall returns a call that nobody waits for yet.
func NewCall[Req, Res any](req Req) *Call[Req, Res] {
	return &Call[Req, Res]{Req: req, answered: make(chan struct{})}
}

// Begin marks the call as one that may take effect from now on. It returns false
// if its caller has left before: then the call must not be run.
func (c *Call[Req, Res]) Begin() bool {
	return c.state.CompareAndSwap(pending, begun) || c.state.Load() != canceled
}

// Rewind takes Begin back, when it is certain that the call took no effect.
func (c *Call[Req, Res]) Rewind() {
	if !c.state.CompareAndSwap(begun, pending) {
		c.state.CompareAndSwap(begunCanceled, canceled)
	}
}

// Answer gives the call its answer. It is called once.
func (c *Call[Req, Res]) Answer(res Res, err error) {
	c.res, c.err = res, err
	close(c.answered)
}

// Wait returns the call's answer. When ctx ends first it gives the call up and returns
// an *Abandoned error.
func (c *Call[Req, Res]) Wait(ctx context.Context) (Res, error) {
	select {
	case <-c.answered:
		return c.res, c.err
	case <-ctx.Done():
		return c.cancel(context.Cause(ctx))
	}
}

// HandBack has the caller do the call alone, beside all batches, unless it has
// left. The call came by Share; if it has begun, it may be done again. HandBack takes the
// place of Answer.
func (c *Call[Req, Res]) HandBack() { c.handBack(slot{}) }

// handBack hands the call back with a turn of the Group's. It returns false if the
// caller has left.
func (c *Call[Req, Res]) handBack(t slot) bool {
	if !c.state.CompareAndSwap(pending, handedBack) && !c.state.CompareAndSwap(begun, handedBack) {
		return false
	}
	c.slot = t
	close(c.answered)
	return true
}

// isHandedBack is whether the caller has to do the call. The caller asks once it is answered.
func (c *Call[Req, Res]) isHandedBack() bool { return c.state.Load() == handedBack }

// cancel gives the call up, unless it has been answered meanwhile.
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

// CanceledError says that the caller left before the answer came.
type CanceledError struct {
	Started bool  // whether the call may have taken effect, or still may
	Cause   error // of the caller's context
}

// Error says whether the call may have taken effect.
func (a *CanceledError) Error() string {
	if a.Started {
		return "left after it began: " + a.Cause.Error()
	}
	return "left before it began: " + a.Cause.Error()
}

// Unwrap returns the cause.
func (a *CanceledError) Unwrap() error { return a.Cause }
