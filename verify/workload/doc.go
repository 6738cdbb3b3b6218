// Package workload drives a lock service with many clients at once: they acquire, wait,
// renew, release, revoke, look and write under their tokens, at random and yet, given
// the same seed, with the same intentions.
//
// # Turns
//
// A client does one turn after the other. Most are a lease from its beginning to its
// end; the others look, revoke somebody's lease, or come late with a lease that is
// over. What a turn is to be is drawn before it begins, from the seed, the client's
// number and the turn's; what becomes of it is up to the service and to time.
//
// # Misbehaving
//
// Clients do what the service must bear. They send calls twice, to different replicas;
// go away while they wait, or right after sending; sleep past the end of their lease
// and renew it then; write under tokens that are stale; forget to release.
//
// # Subscribers
//
// With Options.Subscribers there are readers of events beside the clients: a stream and
// a poller for each service, whose cursors outlive errors and connections and are shown
// to other services too, and goroutines that make blocking reads. They have no effect on
// locks. Streams are closed at random moments. When the clients are done a lock is
// granted that has the name of the end; readers stop when they are told of that grant.
//
// # Lulls
//
// In a lull all clients pause what they do and try to acquire one lock that another of
// them holds. The service refuses, and rolls back transactions that have drawn ids and
// tokens; nothing is committed, so the database flushes nothing. A crash then takes back
// whatever readers were shown that is not durable.
//
// # Losing answers
//
// While it is not known what became of a call, the same call is sent again, for a while
// and to other replicas, too. A client that does not get to know whether it was
// granted a lease never uses its lease_id again. A service that refuses with a code
// that nothing in the load asks for ends the run with that error.
//
// # Names
//
// A lock has one family for all its life: exclusive leases only, readers and writers,
// or permits of one capacity. After some hundred turns a name is given up for a new
// one, so that what happened to each can be checked quickly. All names, and those of
// the resources that are written, begin with the Prefix; every holder's text is used
// for one lease only.
package workload
