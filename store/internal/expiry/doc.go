// Package expiry ends what time alone ends: it sweeps locks when a lease, an unclaimed grant or a place is over, and
// deletes the rows of locks that have long been free.
//
// A lease is over at the end of its grace, whether or not that is recorded: every decision ends expired leases
// first. A sweep is a decision without a request. It records the end promptly, and promotes waiters.
//
// # Timers
//
// Each decision says when time alone will next change its locks. A [Timers] keeps these instants for the locks that
// this replica has decided on, in a heap with one alarm for the first, and sweeps each lock at its instant. A timer may
// be early or late, never wrong: a lease that was renewed through another replica stays, and the sweep says when to look
// again. The states of a lock:
//
//	          decided, or scanned             its instant comes
//	+---------+ -----------> +-------+ -------------------> +-------------+
//	| unknown |              | timed |                      | being swept | -----> unknown, or
//	+---------+ <----------- +-------+                      +-------------+ -----> timed, if the sweep set a timer
//	        decided: time changes nothing                                          or its instant came again
//
// # Scan
//
// Some locks have an end that no timer knows: another replica granted the lease and is gone, the answer to a commit was
// lost, or a sweep has failed. So each replica scans all locks in name order when it starts, when another replica has
// stopped or died, after an outage, and after a sweep that failed. The end of such a lease may be recorded late: by the
// time until the death is noticed, which is lock.ReplicaTTL and a heartbeat, and by the time of the scan, some seconds
// for a million locks. That delays no client, since a request for the lock ends the lease, too.
//
// Without such a cause the scan goes on slowly: 5,000 locks every three seconds, for less than 0.5 % of a core. Then it
// sets timers only for locks that end within the next hour, since it comes by again before the others end. It deletes
// locks that have been free for long; their events remain. And it counts what it sees: [LockCounts].
//
// # Promises
//
//   - A lock that this replica decided on is swept when its instant comes, even if that comes while the lock is
//     being swept.
//   - A sweep that fails is repeated by the scan that it causes.
//   - A lock is deleted only if it is free, has no waiters, and was not changed for the given time, checked with its
//     row locked. No replica waits for another one that deletes.
package expiry
