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
//	 │   Release, Revoke      │ └───────────────────────┘ │
//	 ├────────────────────────┘                           │
//	 │   Release, Revoke, or the end of the grace         │
//	 └────────────────────────────────────────────────────┘
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
