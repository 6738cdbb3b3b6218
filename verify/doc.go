// Package verify records what the clients of a lock service request and receive, and checks
// that the service followed the rules of package lock. It is behind `paddock verify`.
//
// # What is recorded
//
// A [Recorder] sits between clients and any [paddock.Service]. Its [History] has every call with
// the interval in which it took effect, every page and stream message that a [Subscriber]
// received, and the faults that a test injected. [Collect] adds the service's own events at the
// end. The checks trust neither side: they compare answers with answers and with the events.
//
// # What is checked
//
// Each check has a name in the [Report]:
//
//   - the events of each lock follow the rules ([Rules]);
//   - a waiter keeps its place for the wait that it asked for, whether or not its connection breaks;
//   - conflicting leases do not overlap on the database's clock, and tokens grow;
//   - an ended lease is never used again;
//   - answers and events agree, so no answered call is lost;
//   - no lease ends before the end its holder was promised, grace included;
//   - leases of a session end with it;
//   - a set of locks is granted in one decision, with one token, and its leases end together;
//   - sets that share two locks have the same order at both;
//   - a call that is refused with deadlock waited in the circle that its answer shows;
//   - a circle of calls that wait for each other is broken;
//   - an epoch carries over what was promised before, see below;
//   - conflicting leases above and below each other in a tree do not overlap, and no call overtakes one that waits
//     above or below;
//   - no lease is granted in a freeze of its lock, or outside of the rule for it, that was answered before;
//   - a lock that was closed because its work is done is not granted before it opens, nor in the same period;
//   - fenced writes have consecutive versions and never a stale token;
//   - a grant that was requested after another one was answered has the greater token, at whatever locks, unless it is
//     of a reader that joins others;
//   - no token and no lease_id is granted twice, except that the leases of a set share theirs;
//   - all operations on a lock are linearizable;
//   - no two clients hold conflicting leases at once, by their own clocks;
//   - every subscriber receives every event once, in order, and promptly;
//   - a blocking read returns soon after the lock has changed;
//   - no call is refused for too many waiters below the limit ([CheckOptions].WaitersPerLock).
//
// # Linearizability
//
// The strongest check searches for an order of all operations on a lock in which each takes
// effect between its call and its answer, and the rules of package lock, applied one operation
// after the other, give exactly the recorded answers. Herlihy and Wing call such a history
// linearizable ("Linearizability: a correctness condition for concurrent objects", ACM TOPLAS
// 12(3), 1990). The search is done by porcupine (github.com/anishathalye/porcupine), which
// implements the algorithms of Wing and Gong (1993) and Lowe (2017).
//
// The search takes exponential time in the worst case. Three things keep it short: a wait is
// one operation, that of its grant; grants and ends are in the order of their revisions; and
// what an answer says about the grants before and after it bounds the time of the operation. Tens of
// thousands of operations on one lock take a second. A search that does not finish in time is
// reported as a violation. A violation shows the first operation that has no place in any order.
//
// # Sets
//
// A call on a set is one call on each of its locks: each check sees the lease of its lock, and what
// the answer says about it. The checks of sets compare the parts. They do not know whether a set
// could have been granted sooner: the first set in the queue of an available lock may wait for its
// other locks. Time ends the leases of a set together, but each lock records that when it is next
// decided about, so only the ends by calls must have one instant.
//
// # Trees
//
// The events of a lock in a tree are checked like those of others, but for revisions that belong to locks below.
// Whether a refusal was right depends on the locks above and below, so the search for an order of operations leaves
// such locks out: pairs of locks, one above the other, are checked for exclusion and for the order of waiting calls
// instead.
//
// # Freezes and rules
//
// The answer to a freeze or a rule has an instant of the database's clock. What was decided later was decided under
// it, until a call was sent that may have ended it. In a tree a freeze of a lock covers the locks above and below,
// too. Freezes and rules that no recorded client asked for are not known. Whether a refusal by a freeze or by the
// capacity of a rule was right is not checked. Nor is the number of leases of an API key: the service counts them
// every few seconds and promises no exact bound, and no event names the key of a lease.
//
// # Clocks
//
// Calls have times on the recorder's clock; answers and events have times on the database's
// clock. Order is taken from the first, the length of leases from the second. The two are
// compared only as far as the answers themselves bound their offset.
//
// # Epochs
//
// After a fail-over, a restore, or `paddock epoch new`, the database has another clock, perhaps, and may have lost
// what was not on it. The service then begins an epoch, and the ids of events jump by [lock.EventJump]. So the events
// tell to which epoch each belongs. Its beginning is not recorded, but bounded: it was after the last call was sent
// that took effect in the epoch before, and before the first answer that proves an event of the new one. That is
// milliseconds for an operator's epoch, and about the outage for a fail-over. The answers bound the same instant on
// the clock of either epoch. Instants are compared in one epoch only. All events must be of one database.
//
//	before the epoch                       in the epoch
//	an event or an answer                  is not lost
//	a lease or session that is not over    does not end before its whole TTL and grace after the earliest begin
//	one that was over by the last event    is not used, and not seen
//	one whose end is not certain           may have its TTL again, or be over
//	a revoked lease in its grace           blocks others for its whole grace again
//	a grant that is not claimed            returns to the queue, and is not claimed
//	a place without a call                 is kept for lock.MaxWait
//	a place with a call                    is kept for its wait
//	a token                                is less by lock.TokenJump than new ones
//	a freeze, a rule, a closed lock        are in force, until the instants that they name
//	a set                                  is granted and ended as a whole, in one epoch
//	what a client counts on                by its own clock: goes on
//
// Grants may be paused from the first event of an epoch to the first grant. No other relaxation is made: a loss is
// found also where no quorum of standbys was required and it had to be expected.
//
// # Unknown outcomes
//
// A call whose answer was lost may have taken effect, or may do so later. The events decide
// where they can: a grant is matched by its holder, an end by its lease, so each lease_id needs
// its own holder text. A renewal leaves no event, so after a renewal without an answer the end
// of the lease is unknown until the next renewal is answered. Grants without an answer, and
// expiries, are ordered as the events have them.
//
// # Reads
//
// A read of a lock shows at least everything that was answered before the read was sent, with
// one exception: a lease that has expired by the clock may be shown as ended although a renewal,
// decided before that end, is still being committed. A token verification has no exception: no
// renewal succeeds after a verification says that the lease has ended. A blocking read is a read.
//
// # Subscribers
//
// A [Subscriber] records one reader of events for its whole life; its cursor outlives errors,
// connections and replicas. It must receive every event of the table between its first and its
// last cursor, field by field equal, in the order of the ids and once. Only a gap excuses a
// missing event. A received event that is not in the table must have been lost by a new epoch,
// and a gap must come before any event of that.
//
// An event must reach a subscriber within two seconds after an answer, or another subscriber's
// delivery, proved that it was committed. Time counts only while the service is undisturbed. It is
// disturbed from the start of a fault until the replica answers a call that was sent after the
// fault was undone; while calls to the replica fail; and while calls to any replica take more than a
// second longer than they asked to wait.
//
// A circle of waiting calls must be broken within two seconds, and is a violation after four, or after
// seven in total with disturbances. Time counts likewise, by the replicas of all its calls.
//
// # What is not found
//
//   - A read that is older than necessary, but within its own call.
//   - In a tree: a call that is refused or waits without cause.
//   - A service that is slow (other than to subscribers) or refuses what it could grant later.
//   - A circle of waiting calls that is not broken if one of them is sent twice, keeps its place, or is
//     not answered, since it is not known then how long it waits.
//   - Anything about locks that no recorded client uses.
//   - A renewal decided after the end of its lease by a clock that was read before the end, if no
//     verification and no other call on the lock showed that the lease had ended.
package verify
