package lock

import "fmt"

// closed is whether nothing may be granted yet: the database was failed over or
// restored, and the holder of a lease that it has lost may still work.
func (t *turn) closed() bool { return t.view.Now.Before(t.view.GrantsPausedUntil) }

// refusedClosed returns the refusal of who wants a lock meanwhile.
func (t *turn) refusedClosed() *Error {
	left := t.view.GrantsPausedUntil.Sub(t.view.Now)
	return &Error{Code: ErrUnavailable, RetryAfter: left, Ahead: t.waiting(), Detail: fmt.Sprintf(
		"The database was failed over or restored, and may have lost leases whose holders still work. "+
			"Nothing is granted for %d ms; leases that there are go on. Nothing was changed; try again then, or wait with wait_ms.",
		left.Milliseconds())}
}
