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
// # What is refused
//
// All that openapi.yaml does not describe: unknown, repeated and null members of
// a body, unknown and repeated parameters, anything after the object, a body of
// another media type. An explicit zero is not the same as nothing: ttl_ms: 0 is
// refused, although the Service takes a zero Duration for the default.
//
// # What is not given
//
// There is no authentication and no TLS here, and forwarding headers are not
// believed. An answer that was written may still be lost on its way: callers
// send again. A lease_id appears in bodies only, never in the log, which holds
// neither bodies nor query strings.
package server
