// Package server is HTTP in front of a lock.Service. It decides nothing about
// locks: it reads a request strictly, asks the Service, and writes the answer in
// the words of openapi.yaml, from which its types and routes are generated.
//
// # The way of a request
//
//	ServeHTTP      a request id of our own, and one line in the log when it is over
//	recovered      a panic becomes a problem
//	headed         headers that every answer has, to have browsers be strict; HEAD is answered as GET is
//	timed          how long the client may take to receive
//	protected      a write that a browser sends from another site is refused
//	local          nor one under a foreign name, where everybody on this machine may do anything
//	named          a%3Ab is the same name as a:b
//	authenticated  whoever shows no good key gets no further; the key goes into the context
//	routing        chi; what is not there ends in a problem, too
//	checked        names in the path and parameters in the query
//	handler        in, do, out; answer says how long the Service may take
//
// What is known of a request on its way is in one place, its context: its id, what chi routes
// by, and its key. The memory that a body is read with goes on to the next.
//
// A handler names no status. What a success looks like is said in reply.go and
// how a refusal does in problem.go, the only place where a lock.Code meets HTTP.
// wire.go, wire_batch.go and wire_out.go alone know both the types of openapi.yaml and those of
// package lock.
//
// # Waiting
//
// Calls with wait_ms, and streams, are the Service's to answer: nothing is polled
// here. Their limits begin where what they wait for ends.
//
//	a call                the Service has 10 s (Options.RequestTimeout), the answer 10 s after that to leave
//	a call that waits     the same, each after its wait_ms
//	a stream              the same for each page; what is told at once has 10 s to leave, or the client is cut off
//	an idle stream        a comment every 15 s
//	a Service that is     a stream asks 3 times, a second apart, and then ends
//	  unavailable
//	events of a stream    64 KiB held for a client that does not read; the texts are shared by all streams
//	streams               2000 at once (Options.MaxStreams), 200 of them with one API key
//	                        (Options.StreamsPerKey), then too_many_waiters
//
// When the client is gone the context that the Service was given ends: while the
// connection is watched, which it is from the end of the body on, that takes as
// long as the news of it. It is not watched while a further request waits in it
// (pipelining), nor under a GET whose body nobody reads.
//
// When the Server ends, the Service is told first (Options.Drain): it answers the
// calls that wait with lock.ErrUnavailable, and the streams end.
//
// # Who is let in
//
// With Options.Keys every request shows an API key, but for /livez, /readyz, the page
// where to sign in with the files that it loads, and signing out. What is not known to be open
// is shut: also addresses at which there is nothing. The key is looked for in the
// header Authorization: Bearer, and else, for the pages and the three or four things
// that they read, in the cookie that signing in to the page sets. That cookie changes
// nothing except by the page's own forms under /ui/, which a browser sends only from
// there. It holds the key itself, so that replicas need share nothing.
//
// What a key may do is not decided here: it goes along in the context, and
// Options.Locks, which is an access.Guard then, refuses. So a handler cannot forget
// to ask. A stream, and a call that waits, end soon after their key is revoked or expires.
//
// Unknown keys are all refused in the same words. Those that show too many are told
// to go slower, by the address of the connection; good keys pass all the same.
//
// # What is refused
//
// All that openapi.yaml does not describe: unknown, repeated and null members of
// a body, unknown and repeated parameters, anything after the object, a body of
// another media type or with a Content-Encoding. An explicit zero is not the same as nothing: ttl_ms: 0 is
// refused, although the Service takes a zero Duration for the default. Where zero
// says what nothing says, as in wait_ms: 0, it is fine.
//
// # Many calls in one
//
// A batch is refused whole only for what is not about one of its items: who shows no
// key, a body that is no list of them. All else is the result of an item, which says
// what the call of its own would have been answered with. It has one line in the log,
// and one for each code with which items were refused.
//
//	items            1000
//	a batch's body   1 MiB, an item in it 16 KiB as the body of any other call
//	large bodies     64 beyond 16 KiB in memory at once, then unavailable
//
// # What is not given
//
// Without Options.Keys everybody may do anything. TLS is the listener's. Forwarding headers
// are not believed: behind a proxy all clients have its address, and Options.SecureCookies says that
// the proxy has TLS. An answer that was written may still be lost on its way: callers
// send again, and streams go on after the last id. A lease_id appears in bodies only, never in the log, which holds
// neither bodies nor query strings; of an API key it has the id.
package server
