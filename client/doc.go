// Package client is the Go SDK: a [lock.Service] over HTTP.
//
//	locks, err := client.New(client.Options{BaseURL: "http://127.0.0.1:8080"})
//	…
//	grant, err := locks.Acquire(ctx, lock.Acquire{Name: "jobs:nightly", Holder: "worker-1"})
//	if errors.Is(err, lock.ErrHeld) {
//		// somebody else has it
//	}
//
// # Keys
//
// A service that asks for API keys refuses a call without one (lock.ErrKeyMissing), with one that it does
// not know or that is over (lock.ErrKeyInvalid, lock.ErrKeyExpired), and with one that is not
// good for this (lock.ErrRoleMissing, lock.ErrNameNotAllowed): none of these passes by itself. To
// lock.ErrRateLimited the same call may be sent again, after RetryAfter. None of them says that a
// lease is lost.
//
//	locks, err := client.New(client.Options{BaseURL: "https://locks.example.org", Key: os.Getenv("PADDOCK_KEY")})
//
// # Time
//
// A Grant's Until is counted from the moment before the request was sent, on the
// monotonic clock, so a slow answer shortens what is left and never lengthens it.
// That holds for one that was waited for as well: renew it at once, and count from
// there. Until leaves no margin: have the work stop some time before it.
//
// # Waiting
//
// A call that waits is one request for as long as it waits. When its context ends
// the connection is closed, which tells the service that the client is gone. A
// grant may cross that, its answer written and never read; so an Acquire that
// waited sends a release after it and returns when that is answered, or after
// three seconds.
//
// # Following events
//
// Events reads pages of what happened, and Client.Stream a stream of server-sent events.
// Both go on after a cursor, and a cursor of one is good for the other, with any replica
// of the service:
//
//	stream, err := locks.Stream(ctx, lock.EventQuery{Prefix: "jobs:", Cursor: cursor})
//	…
//	defer stream.Close()
//	for {
//		page, err := stream.Next()
//		if err != nil {
//			return stream.Cursor(), err // pause, and open another stream with it
//		}
//		// if page.Gap: look at the locks anew; then use page.Items
//	}
//
// # Sharing requests
//
// Acquires that only try, renewals and releases share requests. A call that finds
// fewer than two requests with such calls under way is a request of its own, at once:
// nobody waits for company. What comes while there are two gathers, and goes as one batch when
// either is answered, or after a tenth of a second if neither is. So a process that
// renews ten thousand leases sends a handful of requests, and the more there is to do, the
// less each call costs. Calls on one lock that gather keep their order.
//
// Each call returns what it would return alone, has its own context, and may be left at
// any time: one that was left before the sending is not sent, and a request that all
// have left is given up. But
//
//   - a batch is answered when its slowest item is decided. That is mostly when all are.
//     A lock whose row somebody keeps locked in the database, beside Paddock, holds up the
//     answers to all that went with it, until the service's time for a request is over;
//     they are done meanwhile. Bound calls by their contexts.
//   - one lost answer is many unknown outcomes.
//   - values of the callers' contexts do not go along with a batch, so a Transport
//     does not see them.
//
// Options.NoCoalesce has each call be a request of its own, as those that wait,
// revocations, reads and fenced writes always are. So is each call for a minute after
// the service, or something in front of it, has shown that it knows no batches.
//
// # Errors
//
// Errors are *[lock.Error] and hold what the server said: errors.Is and errors.As
// do on this side of the wire what they do on the other. Codes that this package
// does not know are kept as they are. When no answer came, or none of Paddock's:
//
//	nothing was sent (no connection, context over)     lock.ErrUnavailable
//	a read                                             lock.ErrUnavailable
//	a change, turned down by something in front        lock.ErrUnavailable
//	a change, otherwise                                lock.ErrUnknownOutcome
//
// Neither means that a lease is lost. The same call again finds out; for Acquire
// that takes a LeaseID chosen by the caller, and it finds its old place in the
// queue. What the network or the proxy said is the error's Cause.
//
// # Not given
//
// A call is sent once: nothing here retries or renews. Package guard does, and
// stops the work in time; most programs want that. net/http sends a
// change a second time only where it knows that nothing of the first was written.
// Redirects are not followed, since a lease_id must not travel to another host.
// There is no timeout but the context's, apart from 10 seconds for a connection.
package client
