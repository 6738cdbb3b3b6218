// Package server is HTTP in front of a lock.Service. It decides nothing about
// locks: it reads a request strictly, asks the Service, and writes the answer in
// the words of openapi.yaml, from which its types and routes are generated.
//
// # The way of a request
//
//	observed    a request id of our own, and one line in the log when it is over
//	recovered   a panic becomes a problem
//	headed      headers that every answer has; HEAD is answered as GET is
//	timed       how long the client may take to receive
//	protected   a write that a browser sends from another site is refused
//	named       a%3Ab is the same name as a:b
//	routing     chi; what is not there ends in a problem, too
//	limited     how long the Service may take
//	checked     names in the path and parameters in the query
//	handler     in, do, out
//
// A handler names no status. What a success looks like is said in reply.go and
// how a refusal does in problem.go, the only place where a lock.Code meets HTTP.
// wire.go and wire_out.go alone know both the types of openapi.yaml and those of
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
//	streams               256 at once, then too_many_waiters
//
// When the client is gone the context that the Service was given ends: while the
// connection is watched, which it is from the end of the body on, that takes as
// long as the news of it. It is not watched while a further request waits in it
// (pipelining), nor under a GET whose body nobody reads.
//
// When the Server ends, the Service is told first (Options.Drain): it answers the
// calls that wait with lock.ErrUnavailable, and the streams end.
//
// # What is refused
//
// All that openapi.yaml does not describe: unknown, repeated and null members of
// a body, unknown and repeated parameters, anything after the object, a body of
// another media type. An explicit zero is not the same as nothing: ttl_ms: 0 is
// refused, although the Service takes a zero Duration for the default. Where zero
// says what nothing says, as in wait_ms: 0, it is fine.
//
// # What is not given
//
// There is no authentication and no TLS here, and forwarding headers are not
// believed. An answer that was written may still be lost on its way: callers
// send again, and streams go on after the last id. A lease_id appears in bodies only, never in the log, which holds
// neither bodies nor query strings.
package server
