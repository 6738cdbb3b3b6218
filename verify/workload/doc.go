// Package workload drives a lock service with many concurrent clients for package verify. They
// acquire, wait, renew, release, revoke, read and write under their tokens at random. The same
// seed gives the same plans.
//
// # Turns
//
// A client takes one turn after the other. In most turns it acquires, uses and ends a lease; in the others
// it reads a lock, revokes a lease, or uses a lease that has ended. The plan of a turn is drawn
// before it begins, from the seed, the client's number and the turn's number. What becomes of
// it depends on the service and on timing.
//
// # Sets
//
// Every fifth turn that uses a lease acquires two to four locks together. Each is acquired in a mode of
// its kind, and each step is about one of them.
//
// # Trees
//
// With Options.Tree, one of five turns uses a lock in a tree, at one of three levels, which covers other such locks or
// is covered by them.
//
// # Freezes and rules
//
// With Options.Policy, an operator freezes some or all locks of the run for a moment, again and again, and changes the
// capacity and the greatest TTL in the rule of a semaphore, the pool, which one of ten turns uses.
//
// # Closed locks
//
// One of twenty turns uses a lock whose release closes it, for a while or until the end of the minute, because its work is
// done. Half of its calls ask for work that is done only once.
//
// # Deadlocks
//
// One of fifty turns that use a lease acquires two locks one after the other, each such turn in the other order than
// the one before, so that some of them wait for each other until the service breaks the deadlock. Only a few clients do
// that at a time, on locks that no other turn uses.
//
// # Misuse
//
// Clients do what the service must tolerate. They send calls twice, to different replicas;
// cancel calls while they wait or right after sending them; sleep past the end of a lease and
// renew it then; write under stale or unknown tokens; leave leases to expire; renew or release one lease
// of a set without the others.
//
// # Subscribers
//
// With Options.Subscribers, readers of events run beside the clients: a stream and a poller for
// each service, whose cursors outlive errors and connections and are also used with other
// services, and goroutines that make blocking reads. They do not change locks. Streams are
// closed at random times. When the clients are done, the run grants a lock named PREFIX:end;
// readers stop when they receive the event of that grant.
//
// # Lulls
//
// In a lull all clients stop their turns and try to acquire one lock that another of them
// holds. The service refuses and rolls back transactions that have drawn ids and tokens; nothing
// is committed, so the database flushes nothing. A crash then takes back whatever readers were
// shown that is not durable.
//
// # Lost answers
//
// A call with an unknown outcome is sent again for a while, also to other replicas. A client that
// does not learn whether it was granted a lock never uses that lease_id again. An error code that
// no call of the workload can expect ends the run with that error.
//
// # Names
//
// A lock has one kind: exclusive leases only, readers and writers, or permits of one capacity, of
// which a call asks for one or several. A name is replaced after some hundred turns, so that the
// history of each name can be checked quickly.
// All names of locks and fenced keys begin with the Prefix, and each lease has its own holder text.
package workload
