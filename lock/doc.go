// Package lock is the domain of Paddock: what a lock is and how it changes
// hands. It imports the standard library only and does no input or output.
//
// # Words
//
// A lock is known by its name. A lease is one grant of a lock to a holder, with
// an end. The lease_id is the secret that proves that the lease is mine; the
// fencing token is the number that grows with each grant and goes along with
// every guarded write. A lock whose lease is past its end, and past its grace,
// is free for every decision, whether anybody has written that down or not.
//
//	          Acquire                      time
//	free ──────────────────▶ held ──────────────────▶ grace
//	 ▲                        │ ▲         Renew         │ │
//	 │   Release              │ └───────────────────────┘ │
//	 ├────────────────────────┘                           │
//	 │   Release, or the end of the grace                 │
//	 └────────────────────────────────────────────────────┘
//
// Revoke ends a lease, whether it is held or in its grace: its holder is refused from
// then on. The lock stays in grace until the lease's grace, which begins at the
// revocation at the latest, is over; at once if the revocation says so.
//
// # Modes
//
// An exclusive lease is alone. Shared leases are together with shared ones, and
// carry one token for as long as any of them is there: a reader must not be fenced
// by the next reader. Permits are together up to the capacity of the lock; each
// has its own token and sits in a slot of its own.
//
// # Waiting
//
// Who cannot have the lock at once may wait for it. The queue is first come, first
// served: the one at its head gets the lock as soon as it fits beside the leases
// that there are, with as many behind it as fit too, and whoever does not fit is
// in the way of all behind. A try never overtakes.
//
// A place belongs to a lease_id, not to a connection:
//
//	             Acquire                    grant
//	(no place) ────────────▶ attached ──────────────────▶ lease
//	    ▲                     │ ▲   ▲                       │
//	    │  wait over, client  │ │   └───────────────────────┘
//	    ├─────────gone────────┘ │       nobody fetched it
//	    │                       │ Acquire again, from any replica
//	    │  kept no longer       ▼
//	    └─────────────────── detached ◀── wait over and Keep, replica gone
//
// A detached waiter is passed over, so no TTL runs for a ghost. A replica that
// grants to a waiter of another cannot know whether that lives: such a grant is
// withdrawn unless it is claimed soon, see [ClaimWithin].
//
// # Deciding
//
// The rules are pure. A [Command] names the locks that it must see; Apply takes
// them in a [View], together with the instant and what else the decision may
// rest on, and returns a [Decision]: the locks as they are now, what happened,
// and the answer. Whoever stores locks makes sure that nobody else decides on
// the same names meanwhile and that the instant was read after that was so.
// Apply changes nothing that it was given.
//
// [Service] is the same thing from the outside: the store implements it on
// PostgreSQL, the client over HTTP, and callers need not know which they hold.
//
// # Not promised
//
// A lease alone does not stop a paused process from writing. The token does,
// where the write lands: see [CheckFence]. A TTL is a lower bound for others and
// never an exact moment.
package lock
