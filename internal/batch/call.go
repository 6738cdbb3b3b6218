// Package batch provides the calls that batches consist of. How calls are gathered is left to its users.
//
// A [Call] is one request and its answer. It may pass through several batches, and be answered at any time and from
// any goroutine. Its caller may stop waiting, and then knows about the outcome what Begin and Rewind have recorded: a
// call that was canceled before it began is never run, and a call that was canceled while it ran is not run again if
// that run had no effect.
package batch

import (
	"context"
	"sync"
)

// A Call is one request on its way to an answer. Make one with NewCall.
type Call[Req, Res any] struct {
	Req Req
	// Caller is what the user of the Call notes about its caller, such as the span of a traced one. It may be nil.
	Caller any

	mu    sync.Mutex
	state state
	res   Res
	err   error
	done  chan struct{} // closed when the state becomes answered
}

// The state of a call. A call that is canceled after it began becomes canceled only if it is rewound.
type state int

const (
	pending state = iota
	begun
	begunCanceled
	canceled
	answered
)

// NewCall returns a call for the request.
func NewCall[Req, Res any](req Req) *Call[Req, Res] {
	return &Call[Req, Res]{Req: req, done: make(chan struct{})}
}

// Begin marks the call as one that may take effect from now on. It returns false if the call was canceled before; then
// the call must not be run.
func (c *Call[Req, Res]) Begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == pending {
		c.state = begun
	}
	return c.state != canceled
}

// Rewind undoes Begin. The runner must be certain that the call had no effect.
func (c *Call[Req, Res]) Rewind() {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state {
	case begun:
		c.state = pending
	case begunCanceled:
		c.state = canceled
	}
}

// Answer sets the result and wakes the caller. It returns false if the call was canceled; then nothing reads the
// result. The call may be pending or begun. Answer must be called at most once.
func (c *Call[Req, Res]) Answer(res Res, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == begunCanceled || c.state == canceled {
		return false
	}
	c.state, c.res, c.err = answered, res, err
	close(c.done)
	return true
}

// Wait returns the call's answer. If ctx ends before the call is answered, Wait cancels the call and returns a
// *CanceledError.
func (c *Call[Req, Res]) Wait(ctx context.Context) (Res, error) {
	select {
	case <-c.done:
		return c.res, c.err
	case <-ctx.Done():
		return c.cancel(context.Cause(ctx))
	}
}

// cancel cancels the call, or returns the answer if there already is one.
func (c *Call[Req, Res]) cancel(cause error) (none Res, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.state {
	case pending:
		c.state = canceled
	case begun:
		c.state = begunCanceled
	case answered:
		return c.res, c.err
	}
	return none, &CanceledError{Started: c.state == begunCanceled, Cause: cause}
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
