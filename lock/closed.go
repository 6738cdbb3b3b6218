package lock

import "fmt"

// paused is whether nothing may be granted yet: the database was failed over or
// restored, and the holder of a lease that it has lost may still work.
func (t *decider) paused() bool { return t.view.Now.Before(t.view.GrantsPausedUntil) }

// errPaused returns the refusal of who wants a lock meanwhile.
func (t *decider) errPaused() *Error {
	left := t.view.GrantsPausedUntil.Sub(t.view.Now)
	return &Error{Code: ErrUnavailable, RetryAfter: left, Ahead: t.attachedWaiters(), Detail: fmt.Sprintf(
		"The database was failed over or restored, and may have lost leases whose holders still work. "+
			"Nothing is granted for %d ms; leases that there are go on. Nothing was changed; try again then, or wait with wait_ms.",
		left.Milliseconds())}
}
