// Package store is a lock.Service on PostgreSQL.
//
// # The transaction
//
// Calls that arrive together are decided together. One batch is one transaction
// and two round trips, each pipelined:
//
//  1. begin; make sure that each name has a row, the lock's anchor; lock the
//     anchors in name order; then, in later statements, read what is beside those
//     that are crowded, read the clock and draw tokens and event ids. Every
//     command is applied in order, by package lock.
//  2. write what changed, insert the events, commit.
//
// Why in this order: a statement that waits for a row has read its clock, and
// drawn its numbers, before the wait. It would renew a lease that ended
// meanwhile, or grant token 10 after 11. So the rows are locked first.
//
// What commits is never cancelled. PostgreSQL ends the wait for a
// standby on a cancel request, and shows a grant that no standby has. The
// transaction runs under the store's context; a caller whose own context ends
// stops waiting and is told whether its call may have been done.
//
// Calls about a place in a queue go into the batches in bounded shares, so that ten thousand of them keep no renewal
// waiting, see dispatch.go.
//
// Items of a [Store.Batch] join their groups together and are calls like any other
// from then on, each with its own answer.
//
// # From memory
//
// A connection remembers how its transactions left locks, see recent.go. A batch of calls on
// these is decided on that, by the same rules, and written by one
// statement that is its own transaction, see swap.go: compare and swap. It writes the
// rows whose xmin is what is remembered, so which nobody has written since, while the clock and the
// epoch are what the decision rests on. Locks that are to be acquired and are not remembered are
// looked at first, see look.go. The other calls go through a transaction that
// looks, and so does all of a batch of which less than half can be done so.
//
// # What is retried
//
// What failed before a commit was sent, or is refused by the database, is run again while any of its callers
// waits. What failed after that is answered with lock.ErrUnknownOutcome; the same
// call again finds the truth, since every command is idempotent.
//
// # What is kept apart
//
// A name whose row somebody outside keeps locked is taken out of the batches, see
// lanes.go. A commit that takes long is left to itself, see commit.go. Reads and
// fenced writes have a share of the connections that deciding never waits for,
// see read.go.
//
// # Waiting
//
// A call that waits has joined a queue in a batch like any other, and sleeps in a
// seat, see acquire.go and seats.go. It wakes when a commit of this replica has
// promoted it, in memory; when another replica says so, see notices.go and
// listen.go; or when the beat finds that it need not wait any more, see beat.go:
// nothing rests on a notification.
//
// Who watches is told from one reader of the events' end, see tail.go.
//
// # Ends
//
// A lease that is over is over for every decision, written down or not. The
// sweep only makes it prompt, and with it those who wait: each replica keeps the
// instants at which time will change the locks that it has seen in a heap, and
// walks the table for those of other replicas, see sweep.go and census.go. All may
// do so at once: sweeping a lock is a command like any other.
//
// # Not given
//
// A plain read may see what a standby has not confirmed yet, and what it says may
// have changed when it arrives. It shows a lease as over that is past its end, though a renewal that was decided in time may
// still be committing; [Store.VerifyToken] waits for that. Only what a command answered is durable.
package store
