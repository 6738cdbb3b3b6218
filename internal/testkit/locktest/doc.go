// Package locktest is the conformance suite of [paddock.Service]: the promises of every implementation. The same tests
// run on the store, on a client with a server, and on several replicas, to one of which each call goes at random.
//
// The rules of locks are proved by the tests of package lock, with a model and without waiting. The suite shows, once
// for each, what an implementation must carry: every command, the fields of requests and answers, every error code with
// its details, the order of events, the bounds of pages, what wakes or cancels a call, and races between replicas. A
// new rule needs a test there; a new field, code or call needs one here.
//
// Each test uses names of its own, so the service may be shared, in use, and full of other locks. It needs the widest
// bounds, those of the zero [lock.Bounds], and room for some hundred waiting calls.
//
// # Time
//
// No test depends on speed. A lease that must stay active gets a TTL that outlives the test run. A lease that must
// end gets the shortest TTL, and may have ended when the answer arrives. A test waits for an end by repeating its
// request, at most until the deadline of the test run. Events may become visible late, because another transaction
// can delay them; tests repeat the read.
//
// A service in memory can be tested in bubbles of testing/synctest, where these waits take no time: [RunInBubbles].
//
// A wait that must succeed lasts [lock.MaxWait] and is repeated with the same lease_id. A test of a kept place is
// repeated with another lock if it took longer than the retention. Where a lost wake-up must show, the wait is not
// repeated.
//
// # Histories
//
// The events of a lock prove that its rules were kept: no conflicting leases, no overtaking, and no forgotten waiter.
// Package verify checks them at the end of most tests. It demands more than a Service promises during failures, when
// waiters of a dead replica are skipped: [verify.Rules] must allow that.
//
// # Not tested
//
// The death of processes, connections and databases; speed; limits on the number of waiters; that an expiry is
// recorded without a request or a waiter.
package locktest
