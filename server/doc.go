// Package server serves a paddock.Service over HTTP. It has no lock logic: it validates a request, calls the Service, and
// writes the answer that openapi.yaml describes. routes.go has the routes; tests compare them, their parameters and their
// bodies with that document. Package api has its types.
//
// # How a request becomes an answer
//
// ServeHTTP assigns a request id, runs the middleware and the handler, and logs one line. The middleware, in order:
//
//	withRecovery           turns a panic into a problem document
//	withCORS               with Options.CORSOrigins, lets browsers show answers to pages of these origins
//	withRelativeAddresses  lets a proxy serve the pages under a prefix
//	withSteps              takes the following steps
//	  setHeaders           sets the headers of every answer; routes HEAD as GET
//	  limitWriting         limits the time to write the answer
//	  checkHeaderSize      rejects headers over 16 KiB
//	  crossOriginCheck     rejects writes that a browser sends from another site
//	  checkLocalHost       with Options.RequireLocalHost, rejects requests for other hosts
//	  decodePath           makes a%3Ab the same name as a:b
//	withAuthentication     rejects requests without a valid API key; stores the key in the context
//	(routing)              by chi; an unknown path or method is refused with a problem, too
//	withSteps              takes the following steps
//	  checkTarget          rejects invalid names in the path and unknown parameters in the query
//	  checkEncoding        rejects bodies with a Content-Encoding
//	  checkNoBody          rejects bodies with members where a call has none
//
// Steps that return before the handler runs, pointers to large values, and functions that are split before they wait
// keep the stack of a waiting call without API key at 8 KiB; with one it has 16 KiB.
//
// A handler decodes the input, calls the Service and returns a reply or an error; answer writes either. A handler
// chooses the status of a success only. answer.go maps each lock.Code to the status of its problem; no other file
// does. query.go reads queries, and package internal/wire/request bodies: bytes, then a model of package api, then a
// command of package lock. Package internal/wire encodes answers.
//
// A requestContext is the context of a request. It holds the request id, the routing state and the key. Buffers for
// bodies are pooled.
//
// # Time limits
//
// The Service waits for locks and events; this package does not poll. The other limits start when the wait ends.
//
//	a call                     10 s for the Service (Options.RequestTimeout), then 10 s to write the answer
//	a waiting call             the same, after its wait_ms
//	an event stream            the same for each page; a client that does not read for 10 s is disconnected
//	an idle stream             a comment every 15 s
//	an unavailable Service     a stream tries 3 times, a second apart, then ends
//
// When a client disconnects, the context passed to the Service is canceled. net/http detects a disconnect only after
// the body has been read. It detects none while a pipelined request is buffered on the connection.
//
// On shutdown, Serve ends the streams and calls Options.Drain, which makes the Service answer waiting calls with
// lock.ErrUnavailable.
//
// # Other limits
//
//	a body                     16 KiB
//	a batch                    1000 items, 1 MiB in all, 16 KiB per item
//	batch bodies over 16 KiB   64 in memory at once, then unavailable
//	event streams              2000 (Options.MaxStreams), 200 per API key (Options.StreamsPerKey), then too_many_waiters
//	text for slow streams      8 MiB for all feeds, but at least one block of 64 KiB each; a turn writes up to 256 KiB
//	processor time of streams  6 % of all processors, see pacer
//
// # Authentication
//
// With Options.Keys, every request needs an API key, except health checks, the sign-in page with its assets, and
// signing out. All other paths need a key, including unknown ones. The key is in the Authorization: Bearer header.
// For the pages and the reads that they make, the cookie that sign-in sets also counts. The cookie authenticates
// writes only under /ui/, where browsers send it only from the page itself. It holds the key, so replicas share no
// session state.
//
// This package does not decide what a key may do. Options.Locks, an access.Guard, checks the key in the context, so a
// handler cannot forget the check. Streams and waiting calls end soon after their key is revoked or expires.
//
// All unknown keys get the same answer. Failed attempts are rate-limited by the connection's address; requests with a
// valid key are not.
//
// # Strictness
//
// Requests that openapi.yaml does not describe are refused: unknown, repeated or null members, unknown or repeated
// parameters, text after the object, other media types, encoded bodies. An explicit zero is accepted where it is a
// value, as in wait_ms: 0. It is refused where the Service takes zero for "use the default", as in ttl_ms: 0.
//
// An error of one item is the result of that item, and equals the answer to a single call. Other errors refuse the
// whole batch: for example a missing key, or a body that is not a list of items. The log has one line for the batch,
// and one for each code among the refused items.
//
// # Not guaranteed
//
// Without Options.Keys, every caller may do everything. The listener provides TLS. Forwarding headers are ignored:
// behind a proxy all clients have the proxy's address. Set Options.SecureCookies if the proxy terminates TLS. An
// answer may be lost after it was written: clients repeat the call, and streams resume after the last id. A lease_id
// and a session_id appear in bodies only. The log has no bodies and no query strings, and only the ids of API keys.
package server
