// Package engine decides commands on locks, in batches, and writes what it decided.
//
// # Files, in reading order
//
//	engine.go   Do: a command finds its worker
//	inbox.go    calls are gathered into batches
//	worker.go   attempts, until each call is answered
//	attempt.go  attempt.run, the stages of the loop; cache.go: what need not be read
//	decide.go   a unit: the calls that are decided together, on one lock or on connected ones
//	commit.go   swap and publish
//	lanes.go    locks whose rows another session keeps locked
//
// # The loop
//
// Calls that arrive while a batch runs form the next batch: an idle service adds no delay, and under load batches
// grow. Only acquires that must wait anyway are held back, until the next call about their lock, see [inbox]. A batch is
// a loop, drawn in docs/kernel.md:
//
//   - look reads the locks that are not cached, or on which nothing is to be written, and locks nothing, see row.Look.
//   - decide applies each command to the state that the ones before it left ([unit.decide]). It is the only place that
//     decides.
//   - swap writes each lock that is still as it was decided on, see row.Swap. It is one statement and one transaction.
//   - again: a lock that another replica has changed meanwhile is read and decided again. That is a miss, as is a swap
//     that wrote nothing because the clock or the epoch had moved on.
//   - publish tells the rest of the store, once, before the callers are answered.
//
// # The locking round
//
// Two replicas that change one lock in turns could miss each other endlessly. After a miss the same loop runs inside
// one transaction whose look locks the rows, in the order of their names. Then no other replica can make the swap
// miss by a change. It can still write nothing: in another epoch, after the clock was set back, or if a lease that a
// decision changes or grants, or a session that it relies on, is over by then.
//
// The locks of a command on several locks are all written or none, in a swap that is undone if one of them had
// changed. They are compared like others first, together with other such commands, and locked after a miss.
//
// # The cache
//
// Each worker caches the locks that it read or wrote. The cache is only a guess: a swap compares it with the database.
// The swap does not compare a lock that it does not write. So a call is refused only on a lock that was read for it, or
// if another call of the batch writes the lock, which proves the refusal, too. See package row for what is compared,
// and docs/design/cached-locks.md for why that is enough after a crash, a fail-over, a restore, VACUUM FULL or a change
// by hand. A claim whose grant is not in the cache proves that another replica has changed the lock, so the lock is
// read.
//
// # Delays that stay local
//
//   - A row that another session keeps locked (an open psql) fails a batch after database.RowTimeout. The lock gets a
//     lane of its own, where its calls wait for the row while all others go on.
//   - A commit that takes longer than a second is late: the worker goes on with other calls. It is never cancelled, see
//     package database. Calls of its batch that it has not done are refused, since later calls on their locks may have
//     been decided.
//   - Calls about places in a queue may come ten thousand at once. They are held in a backlog for each lock, and
//     batches take bounded shares of them, see [inbox].
//
// # What callers are told
//
//	nothing was sent, or the server reports an error      tried again while the caller waits, then ErrUnavailable
//	a commit was late, and had not done the call          ErrUnavailable
//	the answer to a commit is lost                        ErrUnknownOutcome: the same call finds out
//	the server reports a permanent error                  each call is retried alone; if it fails again, ErrInternal
package engine
