// Package history records what clients of a lock service asked and were answered,
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
// # Not found
//
// That a read is older than it need be, within its own call. That a service is slow, or
// refuses what it might grant later. What happens to locks that no recorded client uses.
// A renewal that is decided after the end of its lease, but by a clock that was read
// before it, while nobody else did anything with the lock.
package history
