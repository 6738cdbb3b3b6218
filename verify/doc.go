// Package verify records what clients of a lock service asked and were answered,
// and checks that it could have been so under the rules of package lock.
//
// A [Recorder] stands between clients and any [lock.Service]. What it has heard is
// a [History]: calls with the span of time in which each took effect, and, collected
// at the end with [Collect], the events that the service itself tells. Nothing in it is
// believed because the service says so: the two are held against each other.
//
// # Clocks
//
// Calls have instants of the recorder's clock, answers and events have those of the
// database's. What came after what is taken from the first, how long leases last from
// the second, and the two are compared only where the answers themselves bound how far
// they are apart. A fault that brings another clock, or another database, is noted with
// [Recorder.MarkEpoch]: then less is demanded of the leases that it touched, and as much
// as before of what must not be lost.
//
// # Not knowing
//
// A call whose answer was lost may have been done, or may yet be. Where the events tell,
// they are asked: a grant by its holder, an end by its lease. So every lease_id needs a
// holder's text of its own. A renewal leaves no event, so from one whose answer was lost
// on nobody knows when the lease ends, until the next is answered. A grant of which
// nobody was told is the service's own affair, as are expiries; they are in the order of
// things wherever the events have them.
//
// # Order
//
// The last word has a search for an order of all operations on a lock in which each
// takes effect between its call and its answer, and the rules of package lock, applied
// to one after the other, lead to exactly what was answered: linearizability, as Herlihy
// and Wing defined it (1990), found or ruled out by porcupine. That search may take for
// ever in the worst case. Three things keep it short: a wait is one operation, that of
// its grant; grants and ends are in the order of their revisions; and what an answer says
// of the grants before and after it bounds when it can have been. Tens of thousands of
// operations on a lock take a second. Should it not end in time that is said, and is a
// violation.
//
// # Reads
//
// A read of a lock shows what is committed when it is made: never less than what any
// client was answered before the read was sent. There is one exception. A lease whose
// time is over by the clock may be shown as over although a renewal, decided before that
// end, is still being committed. A verification of a token has no exception: it is
// linearizable, so no renewal succeeds after a verdict that the lease is over. A blocking
// read is a read, and must return soon after the lock is known to have changed.
//
// # Subscribers
//
// A [Subscriber] records one reader of events for its whole life: its cursor outlives
// errors, connections and replicas. Each must be told every event of the table that lies
// between its first cursor and its last, equal field by field, in the order of the ids
// and once. Only a gap excuses an event that is missing. An event that was told and is
// not in the table must have been lost by a new epoch, and then a gap must be told before
// any later event.
//
// A subscriber that reads must be told of an event within two seconds of when an answer,
// or what another subscriber was told, proved that it was committed. Time does not count
// while the service is disturbed: from the beginning of a fault until the replica has
// answered a call that was sent after the fault was undone, while calls to the replica
// fail, and while calls to any replica take a second longer than they may.
//
// # Not found
//
// That a read is older than it need be, within its own call. That a service is slow, other
// than to its subscribers, or refuses what it might grant later. What happens to locks that
// no recorded client uses. A renewal that is decided after the end of its lease, but by a
// clock that was read before it, while no other call on the lock shows that it was over;
// a read, as the exception says, does not.
package verify
