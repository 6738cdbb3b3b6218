// Package eventlog reads the events of locks: pages, the history of one lock, and subscriptions. It also deletes old
// events. Package row writes them.
//
// # Terms
//
//	batch        the events of one commit, a row of paddock.event_batches
//	entry        the events of one lock in a batch; names the batch with the lock's event before them
//	event id     the id of its batch times row.EventsPerBatch, plus its number in the batch
//	cursor       an event id, after which a page begins
//	mark         an advisory lock of an open transaction that may write events; its key contains a batch id
//	bound        every event up to it that will ever exist is visible
//	horizon      the newest event that was deleted
//	gap          events after a cursor were deleted, or a fail-over or restore has lost the event of the cursor
//	item         an event, or an entry that cannot be read
//	tail         the newest items, in memory, for subscribers
//	subscriber   a call that waits for events or for a change of a lock
//	reference    a row of paddock.event_refs: finds an event by its lock or by the lease that it ended
//
// # The bound
//
// The ids of one lock's events are in order. Those of different locks do not follow the order of commits: of two
// transactions, the one with the lower batch id may commit last, and a reader that had passed this id would never see
// its events. So a transaction sets a mark before it draws its batch id. The mark is the last id drawn by then. A
// reader reads, in this order and with a new snapshot each time:
//
//  1. the newest committed batch
//  2. the least mark of an open transaction
//  3. the events up to the lesser of the two, which is the bound
//
// A transaction that drew an id up to the bound has committed before step 3, or never will. All steps are one round
// trip. The bound of a Log does not go back: a mark that was read early and set late is lower than the ids drawn
// after it.
//
// # The history of one lock
//
// Events have no index by name. Each entry leads to the batch before it, so the history is read backwards, from a
// reference: there is one about every 16 revisions, and one to the last event of a lock that was pruned. A page reads
// about as many batches as it has events, and fewer than 50 more, however long the history is.
//
//	references:          r1                r2                p (pruned)        r3
//	batches:     b1 <- b2 <- b3 <- b4 <- b5 <- b6 <- b7 <- b8      b9 <- b10 <- b11 <- b12   (newest)
//	first page after b1: b2 from r1, b5..b3 from r2, b8..b6 from p, ... until the page is full
//
// In descending order, a page begins at the first reference after its cursor, and goes on with those before it.
//
// # Instants
//
// Events have no index by instant either. The order of batch ids is about that of their instants, so a binary search
// finds the first batch of a range; what is up to clockSlack out of order is still found, see [clockSlack].
//
// # Subscriptions
//
// One goroutine reads new events into the tail while there are subscribers. A subscriber looks there for events after
// its id, or in the table if it is further behind. If there are none, it sleeps until the tail wakes it: for an event of
// its names, which the tail finds in an index of exact names and of prefixes, so that those of other names cost nothing.
// However many of these have come and gone, the subscriber goes on right before the event.
//
//	idle --subscribe--> reading --the last subscriber leaves--> lingering --5 s--> idle
//	                       ^-------------- subscribe ---------------'
//
// # Promises
//
//   - Consecutive pages contain each selected event once, in the order of ids, unless the page reports a gap.
//   - A cursor may be between two events of a batch.
//   - The work for one page is bounded, see [Log.Page], also for a query that selects nothing: a search that ends there
//     says how far it has come.
//   - Following several names costs one wake for each event of these, as following one does. An event of a kind that the
//     query does not select wakes nobody.
//   - A page of several names reads one step of the table at most. If that does not reach the bound, there is a gap.
//   - An event is kept for the retention time. References to an event may be deleted earlier if events with greater ids
//     were older, which happens only when the database's clock was set back.
package eventlog
