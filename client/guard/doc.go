// Package guard holds a lease while work runs under it: it renews the lease in the background, and
// it cancels the work before the lease can end.
//
//	err := guard.Do(ctx, locks, "jobs:nightly", guard.Options{}, func(ctx context.Context, lease *guard.Lease) error {
//		return pgfence.Tx(ctx, pool, "accounts", lease.Token(), func(tx pgx.Tx) error {
//			…
//		})
//	})
//	if errors.Is(err, lock.ErrHeld) {
//		return nil // another worker is doing the job
//	}
//
// [Do] is the simplest form. [Once] runs work that needs to be done once per day, or per any other time, on all
// machines together. [Acquire] returns a [Lease] to be released by the caller. [RWLock],
// [Semaphore] and [Election] build on them; [DoAll] and [AcquireAll] are for several locks. All work with any
// paddock.Service, usually a client.Client.
//
// # How it works
//
// Acquire chooses a lease_id and repeats the same acquire if an answer is lost, so a lost answer
// leaves no second lease behind. With Options.Wait it waits in the queue, using as many calls as
// needed while keeping its place. A waiting call asks for a TTL of five seconds at most, and the
// first renewal, before Acquire returns, for Options.TTL: if the process was stopped while it waited,
// the lock is free again within seconds. A free lock is granted with Options.TTL at once.
//
// A Lease is renewed every third of its TTL, or slightly earlier. All leases of a process with the
// same TTL are renewed at the same moments, so that a client can send many renewals in one
// request. A release is sent even if the caller's context has ended.
//
// With a client.Client, a guard learns of the end of its lease at once, such as that an operator has revoked it: all
// guards of the client share one request that waits for such events, see WatchEnds of client.Client. What it says is a
// hint that makes the guard renew, and the renewal decides. A guard takes part when its lease has been held for 300 ms.
// With another paddock.Service, or while that request fails, the next regular renewal finds out.
//
// The deadline of a Lease is the time at which the last successful request was sent, plus the
// remaining time which the service reported, minus Options.Margin. A slow answer therefore shortens
// the lease and never extends it. A grant whose answer was slow, as after a wait, is renewed before
// Acquire returns. The clock includes time during which the machine was suspended, which Go's
// monotonic clock does not.
//
// A [Session] keeps many leases alive with one renewal. [OpenSession] opens it, and Options.Session acquires leases
// in it. The leases have the session's deadline, and the contexts of their work end together. Use a session in a
// process that holds many locks.
//
// [AcquireAll] and [DoAll] acquire several locks, all or none. Such a Lease is renewed, lost and released as a whole.
//
// # States
//
//	          renewed
//	        ┌─────────┐
//	        ▼         │  a renewal failed
//	───▶  Held ─────────────────────────▶ AtRisk
//	        ▲          renewed              │
//	        └───────────────────────────────┤
//	                                        │ the deadline has passed
//	  the service reports lease_lost        ▼
//	  (from Held, too) ───────────────▶   Lost
//
// An outage is not a loss. After a refused connection, a lost answer, a 429 or a 5xx, the lease is at
// risk, and the work continues until the deadline. When the deadline passes, or as soon as the
// service reports lease_lost, the lease is lost: Done is closed, and the work's context is canceled
// with a cause that is lock.ErrLeaseLost.
//
// # Limits
//
// A context stops only code that checks it. If the process was paused, its context is canceled at
// the first check afterwards, even if no timer has fired yet: Err and Done of the work's context
// compare the clock when they are called. Between such a check and a write there remains a gap that
// no client can close. The fencing token closes it at the resource: see package pgfence and
// lock.TokenFrom.
//
// Leases are not re-entrant. A nested Do of the same name asks for another lease: it is refused, or,
// with Options.Wait, it waits for the outer lease, which does not end while the nested call waits.
//
// A Lease that is never released is renewed until the process ends, unless Options.MaxHold is set.
package guard
