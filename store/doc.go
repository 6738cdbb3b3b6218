// Package store is a lock.Service on PostgreSQL.
//
// # The transaction
//
// Calls that arrive together are decided together. One batch is one transaction and two round trips, each pipelined:
//
//  1. Begin. Create a row, the lock's anchor, for each new name. Lock the anchors in name order. Then, in later
//     statements, read slots and queues, read the clock, and draw tokens and event ids. Package lock applies the
//     commands in order.
//  2. Write what changed, insert the events, commit.
//
// The order matters. A statement that waits for a row has read its clock and drawn its numbers before the wait: it would
// renew a lease that ended meanwhile, or grant token 10 after token 11. So the rows are locked first.
//
// A commit is never cancelled. On a cancel request PostgreSQL ends its wait for a standby and shows a grant that no
// standby has. The transaction runs under the store's context. A caller whose own context ends stops waiting and learns
// whether its call may have taken effect.
//
// Calls about places in queues enter batches in bounded shares, so that ten thousand of them do not delay a renewal, see
// dispatch.go.
//
// The items of a [Store.Batch] join their groups together. From then on they are calls like any other, each with its own
// answer.
//
// # Optimistic commits
//
// A connection caches the locks that its transactions wrote, see recent.go. A batch of calls on cached locks is decided on
// the cached state, by the same rules, and written by one statement that is its own transaction, see swap.go: compare and
// swap. The statement writes the rows whose xmin is the cached one, so rows that other transactions changed are left
// alone, while the clock and the epoch still match the decision. Locks to acquire that are not cached are read first, see
// look.go. All other calls go through the transaction above, and so does a whole batch if fewer than half of its calls are
// on cached locks.
//
// # Retries
//
// A failure before the commit was sent, or one that the database reports, is retried while a caller waits. A failure after
// that is answered with lock.ErrUnknownOutcome. The same call again finds out what happened, since every command is
// idempotent.
//
// # Isolation
//
// A name whose row another session keeps locked is taken out of the batches, see lanes.go. A slow commit is detached from
// its batch worker, see commit.go. Reads and fenced writes have their own share of the connections, which decisions never
// wait for, see read.go.
//
// # Waiting
//
// A call that waits joins the queue in a batch like any other, and then sleeps on this replica, see acquire.go and
// seats.go. It wakes when a commit of this replica promotes it, in memory; when another replica notifies this one, see
// notices.go and listen.go; or when the heartbeat finds that it need not wait any more, see beat.go. Notifications are
// hints: correctness never depends on them.
//
// One goroutine per replica tails the event table and fans out to subscribers, see tail.go.
//
// # Expiry
//
// A lease that is over is over for every decision, whether the end is written or not. The sweep makes ends prompt, and
// with them the grants to waiters: each replica keeps the times at which its locks will change in a heap, and scans the
// table for locks of other replicas, see sweep.go and census.go. All replicas may sweep at once: a sweep is a command like
// any other.
//
// # Not guaranteed
//
// A plain read may show a grant that no standby has confirmed, and it may be out of date when it arrives. It shows a lease
// as over once it is past its end, although a renewal that was decided in time may still be committing;
// [Store.VerifyToken] waits for that. Only the answer to a command is durable.
package store
