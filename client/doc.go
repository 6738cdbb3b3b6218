// Package client is the Go SDK: a [paddock.Service] over HTTP.
//
//	locks, err := client.New(client.Options{BaseURL: "http://127.0.0.1:8080"})
//	…
//	grant, err := locks.Acquire(ctx, lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "worker-1"})
//	if errors.Is(err, lock.ErrHeld) {
//		// another client holds the lock
//	}
//
// A Client sends each call once to an address. It does not repeat calls and does not renew leases. Package guard
// does both, and stops the work before the lease ends; most programs should use it.
//
// # Dependencies
//
// A program that imports this package and package guard links three modules beside Paddock:
// google/uuid, cenkalti/backoff and golang.org/x/sys. It links neither the server nor a database
// driver.
//
// # Several addresses
//
// Options.BaseURL may name several replicas of one deployment, or proxies in front of it:
//
//	locks, err := client.New(client.Options{BaseURL: "https://a.example.org,https://b.example.org"})
//
// Calls go to the current address, at first the first one. If an address cannot be reached, breaks the connection,
// answers 502, 503 or 504, or is silent, the next one becomes current, and the same request is sent to it at once, with
// the same lease_id. A call tries each address once. If none answers, the error names each address and what is wrong
// there. So that a dead address does not use up the time of a call, it is given the time that is left, 15 seconds at
// most, divided by twice the number of addresses left; the last one has all that is left. After 30 seconds at the
// earliest, a call asks the addresses before the current one for /readyz, without waiting for the answer, and the first
// that is ready becomes current. The pause doubles up to five minutes while none is.
//
// A wait for a lock takes requests of ten seconds at most, which keep the place in the queue, so it goes on at another
// address with its place. A request that waits is silent if it is not answered within its wait and two seconds. Long
// reads of events and streams go on after their cursor; a stream is silent after 20 seconds. A revocation whose answer
// was lost is not sent to another address, because that would refuse it if it has taken effect; nor is a fenced write
// with an IfVersion and without an OperationID.
//
// # API keys
//
// A service with API keys refuses a call without a key (lock.ErrKeyMissing), with an unknown or
// expired key (lock.ErrKeyInvalid, lock.ErrKeyExpired), and with a key that does not permit the call
// (lock.ErrRoleMissing, lock.ErrNameNotAllowed). Retrying does not help. A call refused with
// lock.ErrRateLimited may be sent again after RetryAfter. None of these errors means that a lease
// is lost.
//
//	locks, err := client.New(client.Options{BaseURL: "https://locks.example.org", Key: os.Getenv("PADDOCK_KEY")})
//
// A key that is replaced while the program runs comes from Options.KeyFunc, which reads it again for each request, and
// once more when the service refuses it. Options.TLSFunc does the same for authorities and client certificates. After
// paddock key new, wait until all replicas know the new key, which takes two seconds from when they have the auth file.
// Then replace the key, and then revoke the old one.
//
// # Time
//
// The Until of a Grant is computed from the time just before the request was sent, on the monotonic
// clock. A slow answer therefore shortens the remaining time and never extends it. The same holds
// for a call that waited in the queue: renew its lease at once and use the Until of the renewal.
// Until includes no safety margin. Stop the work some time before it.
//
// # Waiting
//
// A call that waits for a lock is one HTTP request for as long as it waits, or one after another if there are several
// addresses. If such a request is cut after a second or more, the wait goes on with another one, at the next address. If
// a proxy has cut it, which a 504 says, or a second one that is cut after about the same time at once after the first,
// the requests of the client ask for 80 % of that time for ten minutes, and stay at the address. When its context ends,
// the client closes the connection, which tells the service that the client is gone. The service
// may have granted the lock at that moment. An Acquire that was waiting therefore sends a release
// before it returns, which takes up to three seconds if the service does not answer.
//
// # Several locks at once
//
// A call may name up to 32 locks, and acquires all of them or none. They have one lease_id, and are
// renewed and released together:
//
//	grant, err := locks.Acquire(ctx, lock.Acquire{
//		Locks: []lock.Member{{Name: "accounts:17"}, {Name: "accounts:42"}}, Holder: "worker-1", Wait: 30 * time.Second,
//	})
//	…
//	err = locks.Release(ctx, lock.Release{Locks: grant.Requested(), LeaseID: grant.ID})
//
// grant.Leases has one lease for each lock. A call on several locks is sent in a request of its
// own, never in a batch.
//
// # Sessions
//
// A session keeps many leases alive with one renewal. All of its leases end with the session, also those that other
// processes acquired with its ID:
//
//	session, err := locks.OpenSession(ctx, lock.OpenSession{Holder: "worker-1", TTL: 30 * time.Second})
//	…
//	grant, err := locks.Acquire(ctx, lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "worker-1", SessionID: session.ID})
//	…
//	session, err = locks.RenewSession(ctx, lock.RenewSession{ID: session.ID})
//	if errors.Is(err, lock.ErrSessionLost) {
//		// stop the work under all leases of the session
//	}
//
// The Until of each renewal is that of all leases of the session, except of those with a MaxHold.
//
// # Following events
//
// Client.Events reads pages of past events. Client.Stream opens a stream of server-sent events.
// Both continue after a cursor, and a cursor is valid for both, on every replica of the service:
//
//	stream, err := locks.Stream(ctx, paddock.EventQuery{Prefix: "jobs:", Cursor: cursor})
//	…
//	defer stream.Close()
//	for {
//		page, err := stream.Next()
//		if err != nil {
//			return stream.Cursor(), err // pause, then open another stream with this cursor
//		}
//		// if page.Gap: read the locks again; then use page.Items
//	}
//
// Client.WatchEnds gives a hint when a lease or a session may have ended. Package guard uses it.
//
// # Coalescing
//
// Renewals, releases, and acquires that do not wait may share requests. While fewer than two such
// requests are in flight, a call is sent at once in a request of its own. Further calls gather and
// are sent as one batch when a request is answered, or after 100 ms at the latest. A process that
// renews ten thousand leases thus sends a handful of requests. Gathered calls on the same lock keep
// their order.
//
// Each call returns the result it would have on its own and has its own context. A call that is
// canceled while it gathers is not sent, and a request whose calls are all canceled is aborted.
// The consequences are:
//
//   - A batch is answered when all its items are decided. If a foreign transaction has locked a row
//     in Paddock's database, one item can delay the answers to all others in its batch until the
//     service's request timeout. The other items take effect meanwhile. Bound calls by their contexts.
//   - One lost answer means an unknown outcome for every call in the batch.
//   - Values of the callers' contexts are not passed on to a batch, so a Transport does not see them.
//
// Options.NoCoalesce sends each call in a request of its own. Calls that wait, revocations, reads and
// fenced writes always are. If the service, or a proxy in front of it, turns out not to support
// batches, each call is sent on its own for one minute.
//
// # Errors
//
// Errors are *[lock.Error] and contain what the service reported. errors.Is and errors.As work as
// they do on a local [paddock.Service]. Codes unknown to this package are kept. If no answer arrived,
// or one that is not from Paddock, the code is:
//
//	nothing was sent (no connection, context over)     lock.ErrUnavailable
//	a read                                             lock.ErrUnavailable
//	a change, refused by a proxy                       lock.ErrUnavailable
//	a change, otherwise                                lock.ErrUnknownOutcome
//
// An answer is from Paddock if it has the header Paddock-Api: v1. A proxy must pass that header on.
//
// Neither code means that a lease is lost. Send the same call again to find out. For Acquire this
// requires a LeaseID chosen by the caller; the call then also finds its place in the queue. The
// error of the network or the proxy is the Cause.
//
// # Limits
//
// net/http repeats a change by itself only if it knows that nothing of the first attempt was written.
// Redirects are not followed, because a lease_id must not be sent to another host. Calls have no
// timeout other than their context, except 10 seconds for dialing.
package client
