// Package waiters holds the calls that wait for locks on this replica, and wakes them when they are granted one.
//
// Package lock decides on the order of a queue and on the next waiter to be granted a lock. This package decides
// nothing: it submits commands, and sleeps in between.
//
// # Terms
//
//   - A waiting call is an Acquire with a wait. Its attachment, a random number, tells it from an earlier or later
//     call with the same lease_id.
//   - To promote a waiter is to grant it the lock, in the decision that made the lock available.
//   - A grant to a waiter of another replica is unclaimed until that replica has sent a Claim.
//   - A heartbeat says that a replica is alive for the next lock.ReplicaTTL. Other replicas skip the waiters of one
//     that is not, and look for the leases that it has granted: no timer may end them.
//
// # The states of a waiting call
//
//	registered ── granted at once, or refused ──────────────────────────────▶ answered
//	    │ joins the queue
//	    ▼
//	 sleeping ─── granted by a decision of this replica ────────────────────▶ answered
//	    │  ▲
//	    │  └────────── waits still ───────────┐
//	    ├─ woken ────────────────────────▶ claims ── granted, or place gone ─▶ answered
//	    ├─ wait over, or replica drains ─▶ leaves ── granted, or refused ────▶ answered
//	    └─ client cut off ─▶ abandoned: a Leave in the background
//
// A call is also abandoned if it is answered without a decision on its last command, because the database did not
// answer.
//
// # How a call is woken
//
//  1. A decision of this replica that promotes the call hands it the grant in memory, see [Registry.Notify].
//  2. Another replica that promotes it sends a notification. These are collected for a few milliseconds.
//  3. With each heartbeat the replica asks which of its calls need not wait any more.
//  4. All calls are woken when the connection for notifications is new, and when a heartbeat ran out: other replicas
//     may have skipped them.
//
// Notifications are hints. With heartbeats alone every call is granted its lock, up to a second later.
//
// # Promises
//
//   - A call that was granted a lock while its client left, or while its answer was lost, gives the grant back, again
//     and again until the database confirms it or the place has lapsed by itself.
//   - A call whose connection is cut, or that is answered "unavailable", keeps its place until its wait would have
//     ended, and for lock.PlaceRetention at least: its client may return, here or on another replica. A client that
//     does not want to return sends a Release. A call without a lease_id loses its place at once, since no client can
//     return to it.
//   - A replica that drains answers every waiting call, and each keeps its place for as long.
//   - The limit on waiting calls is of all replicas together, as far as their last heartbeats tell.
package waiters
