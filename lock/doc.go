// Package lock is the domain of Paddock: what a lock is and how it changes hands. It imports only the standard
// library and does no input or output.
//
// # Terms
//
// A lock is identified by its name. A lease is one grant of a lock to a holder until an instant. The lease_id is the
// secret UUID that proves ownership of the lease. The fencing token is a number that grows with each grant and
// accompanies every guarded write. A waiter is a request in the queue of a lock. Its place is a number that orders the
// queue; it stays the same when earlier waiters leave. A replica is one process of the service. All instants are
// on the database's clock, except [Grant].Until.
//
// # States
//
// A lock is free, held, or in grace; or suspect, see below:
//
//	          Acquire                      time
//	free ──────────────────▶ held ──────────────────▶ grace
//	 ▲                        │ ▲         Renew         │ │
//	 │   Release              │ └───────────────────────┘ │
//	 ├────────────────────────┘                           │
//	 │   Release, or the end of the grace                 │
//	 └────────────────────────────────────────────────────┘
//
// In grace the lease has expired: its holder may still renew it, and no other client can acquire the lock. After the
// grace every decision treats the lock as free, even if the expiry is not stored yet.
//
// Revoke ends a lease that is held or in grace. The holder can no longer renew or release it. The lock stays in grace
// until the grace of the lease is over, counted from the revocation or from the expiry, whichever came first. A
// revocation may skip the grace.
//
// # Suspect locks
//
// A lease that stays, see [Acquire].Stays, does not end by itself. When its grace is over it is suspect: its holder may
// be gone in the middle of work that somebody must look at. No conflicting lease is granted. The holder may still renew it,
// and then it is held again, or release it; an operator may revoke it, and its grace is over by then.
//
//	held ──── time ────▶ grace ──── time ────▶ suspect ──── Release, Revoke ────▶ free
//	 ▲                     │                      │
//	 └─────── Renew ───────┴──────── Renew ───────┘
//
// # Closed locks
//
// A lock is closed until an instant if nothing may be granted until then: no lease, and no intention. Existing leases
// can be renewed and released, and waiters keep their places; they are granted the lock when it opens. So in a tree a
// closed lock closes all locks below it. Three things close a lock, and it opens at the latest of their ends:
//
//   - [View].GrantsPausedUntil, after a fail-over that may have lost leases.
//   - A [Freeze], which an operator declares for a [Scope] of names, and ends again.
//   - A [Closure]: the holder of an exclusive lease has released it with a [Closing], because its work is done until a
//     later instant. A call for work that needs to be done only once is told so at once, see [Acquire].Once. If the holder
//     crashes, the lock stays open, so another client does the work. A [Revoke] of the token of the lease that was released
//     opens the lock early.
//
// # Modes
//
// An exclusive lease conflicts with all other leases. Shared leases are compatible with each other and carry the same
// token for as long as any of them exists, so that no reader is fenced by the next one. Permits are compatible up to
// the capacity of the lock; each lease has its own token and its own slot. A lease of several permits has one token and
// a slot for each of them. It is granted all of them or none, and they end together.
//
// # Waiting
//
// A request that cannot be granted may wait in a FIFO queue. The head is granted as soon as it is compatible with the
// current leases, together with compatible waiters behind it; the first incompatible waiter blocks the rest. A
// non-waiting request never jumps the queue.
//
// A place belongs to a lease_id, not to a connection:
//
//	             Acquire                    grant
//	(no place) ────────────▶ attached ──────────────────▶ lease
//	    ▲                     │ ▲   ▲                       │
//	    │  wait ended, or     │ │   └───────────────────────┘
//	    ├──Release────────────┘ │     grant not claimed
//	    │                       │ Acquire again, on any replica
//	    │  time over, Release   ▼
//	    └─────────────────── detached ◀── wait ended with KeepPlace, connection cut, or replica gone
//
// A detached waiter is skipped, so that no TTL runs for an absent client. Its place is kept until the wait that was
// asked for is over, and for [PlaceRetention] at least. A replica that grants to a waiter of another replica cannot
// know whether that replica is alive: the grant is withdrawn unless it is claimed within [ClaimTimeout].
//
// # Sets
//
// An acquire, a renewal or a release names a list of locks, usually just one. A set is several locks that are acquired
// together, all or none. The leases of a set have one lease_id and one token, except that a shared lease has the token
// of the readers that it joins. They begin and end together: a renewal, a release, a revocation, or an expiry ends or
// extends all of them. A set that waits holds no lock. It has a place in each queue, taken in one decision, so that two
// sets are in the same order wherever they meet and never wait for each other in a circle. It is granted when its turn
// has come at all of its locks. Until then, a lock at which its turn has come stays free, and the waiters behind it
// wait: that is what first come, first served costs at each lock.
//
// # Policy
//
// Operators declare a [Policy], which may change at any time: [Trees], freezes, and rules. A [Rule] bounds what may be
// asked of the locks of a scope: how long a lease may last, how many permits there are, how many leases an API key may
// have. A command is decided under one Policy: [Command].In gives it the ancestors and the bounds, and the [View] has the
// same Policy. The decision is stored only if that is still the one in force.
//
// # Sessions
//
// A [Session] keeps the leases and places of one client alive. They have no end of their own, and end together with
// the session. One renewal of the session is enough for all of them. So a client that is gone loses all of them at
// one instant.
//
// # Deadlocks
//
// A [TaskID] says which waits belong to which leases; in a session it is that of the session by default.
// [FindDeadlocks] finds the calls that wait for each other in a circle, and [BreakDeadlock] refuses one that must give
// way. A [WaitChain] shows what the first waiter of a lock waits for in the end.
//
// # Deciding
//
// The rules are pure functions. A [Command] names the locks that it needs; Apply receives them in a [View], with the
// current time and the other inputs of the decision, and returns a [Decision]: the new locks, the events, and the
// answer. Apply does not modify its input. The caller may store the result only if the locks are still as Apply
// received them, and no instant has passed on which the decision rests, such as the end of a lease that it extends. It
// ensures that by excluding other decisions first, or by comparing when it stores.
//
// The interface of a lock service is in package paddock: what may be asked of it besides these commands, such as pages of
// locks and events, is no rule.
//
// # Not guaranteed
//
//   - A lease alone does not stop a paused process from writing. The token does, if the resource checks it: see
//     [CheckFence].
//   - A TTL is a lower bound: unless the lease is released or revoked, the next conflicting grant comes no earlier, but
//     perhaps later.
//   - A lock is not re-entrant: the owner of a lease is identified by its lease_id, not by the text in Holder.
//
// # Reading order
//
// A file refers to files of its own line and of the lines before it.
//
//   - What there is: caller.go, slots.go, lease.go, member.go, task.go, session.go, closing.go, record.go, event.go, cycle.go,
//     errors.go, bounds.go, context.go.
//   - What operators declare: scope.go, tree.go, freeze.go, rule.go, policy.go.
//   - What is asked, and what is answered: set.go, command.go.
//   - One lock while a command is decided: state.go changes it and emits events, queue.go says whose turn it is.
//   - All locks of a command: decider.go applies what time has changed, has the steps that several rules share, and
//     makes the decision; refusal.go says why a call is refused.
//   - Calls that wait for each other: wait_graph.go, victims.go, deadlock.go, wait_chain.go.
//   - The rules, a command or two in each file: acquire.go, wait.go, renew_release.go, revoke.go, fence.go,
//     report_stale.go, note_freeze.go.
//   - The public views of a lock: info.go.
package lock
