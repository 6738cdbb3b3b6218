// Package guard keeps a lease alive while work is done under it, and stops the
// work before the lease can be somebody else's.
//
//	err := guard.Do(ctx, locks, "jobs:nightly", guard.Options{}, func(ctx context.Context, lease *guard.Lease) error {
//		return pgfence.Tx(ctx, pool, "accounts", lease.Token(), func(tx pgx.Tx) error {
//			…
//		})
//	})
//	if errors.Is(err, lock.ErrHeld) {
//		return nil // somebody else does it
//	}
//
// It stands on any lock.Service: mostly a client.Client.
//
// # What it does
//
// A guard acquires under a lease_id of its own choice and sends the same acquire
// again when an answer is lost, so nothing is left behind. It waits in the queue, if
// it is to, over as many calls as that takes, at one place. It renews each third of
// the TTL or a little sooner, at instants that all leases of the process with that TTL share, so that
// a client can send many renewals in one request. When the lease is released, it is so on a context that
// survives the end of the caller's.
//
// Its deadline is the instant at which the request was sent that was last granted,
// plus what that grant said was left, less a margin; so a slow answer shortens it. A
// grant that was long on its way, as those that were waited for mostly are, is renewed before
// anybody is told of it. The clock counts the time for which the machine was
// suspended, as Go's does not.
//
// # States
//
//	          renewed
//	        ┌─────────┐
//	        ▼         │  a renewal failed
//	───▶  Held ─────────────────────────▶ AtRisk
//	        ▲          renewed              │
//	        └───────────────────────────────┤
//	                                        │ the deadline has come
//	  the service says lease_lost           ▼
//	  (from Held, too) ───────────────▶   Lost
//
// An outage is not a loss: refused connections, lost answers, 429 and 5xx put the
// lease at risk, and the work goes on until the deadline. At the deadline, or as
// soon as the service says lease_lost, the lease is lost: Done is closed and the
// context of the work is cancelled with a cause that is lock.ErrLeaseLost.
//
// # Not given
//
// A context stops only who looks at it. A process that was paused looks when it runs
// again, and finds its context cancelled, whatever the timers of the runtime are up
// to: Err and Done of the work's context compare the clock when they are called.
// Between that look and a write there is still a gap that no client can close. The
// fencing token does, where the write lands: see package pgfence, and lock.TokenFrom.
//
// There is no re-entrancy: another Do of the same name inside of Do is another
// lease and is refused, or waits for itself.
//
// A Lease that is never released is renewed until its process ends. Options.MaxHold
// bounds that.
package guard
