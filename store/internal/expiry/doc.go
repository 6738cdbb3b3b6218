// Package expiry ends what time alone ends: it sweeps locks when a lease, an unclaimed grant or a place is over, and
// deletes the rows of locks that have long been free.
//
// A lease is over at the end of its grace, whether or not that is recorded: every decision ends expired leases
// first. A sweep is a decision without a request. It records the end promptly, and promotes waiters.
//
// # Timers
//
// Each decision says when time alone will next change its locks. A [Timers] keeps these instants for the locks that
// this replica has decided on, and sweeps each lock at its instant. A timer may be early or late, never wrong: a
// lease that was renewed through another replica stays, and the sweep says when to look again. The states of a lock:
//
//	          decided, or scanned             its instant comes
//	+---------+ -----------> +-------+ -------------------> +-------------+
//	| unknown |              | timed |                      | being swept | -----> unknown, or
//	+---------+ <----------- +-------+                      +-------------+ -----> timed, if the sweep set a timer
//	        decided: time changes nothing                                          or its instant came again
//
// # Scan
//
// Each replica scans all locks in name order, over and over, and so finds the leases that replicas which are gone have
// granted. The scan takes at most a twentieth of a core. With a million locks it takes about a minute; by so much the
// end of such a lease may be recorded later. That delays no client, since a request for the lock ends the lease, too.
//
// The scan also deletes locks that have been free for long. Their events remain. And it counts what it sees:
// [LockCounts].
//
// # Promises
//
//   - A lock that this replica decided on is swept when its instant comes, even if that comes while the lock is
//     being swept.
//   - A sweep that fails is repeated when the scan reaches the lock.
//   - A lock is deleted only if it is free, has no waiters, and was not changed for the given time, checked with its
//     row locked. No replica waits for another one that deletes.
package expiry
