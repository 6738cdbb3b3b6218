// Package request decodes the JSON bodies of requests, strictly: it accepts what openapi.yaml describes and nothing
// else. Only the server uses it.
//
// # How a request travels
//
// A body goes through two steps, and each is written once:
//
//	bytes     {"holder": "worker-1", "ttl_ms": 3e4}
//	  decode  fills the model: members, types, required members
//	model     api.AcquireRequest{Holder: "worker-1", TTLMs: new(int64(30000))}, generated from openapi.yaml
//	  command checks what the domain cannot: a zero that was sent, a number too large for a Duration
//	command   lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "worker-1", TTL: 30 * time.Second}
//
// Package lock checks the command. A new member needs a line in openapi.yaml and one in the method command of its
// model.
//
// # Errors
//
// Every error is a *lock.Error with the code lock.ErrInvalid. Its Field is the place of the invalid value, as a JSON
// Pointer without the first slash, such as locks/3/name. It is empty for the body as a whole: nothing, not an object,
// something after the object, and malformed JSON, which comes before all other errors. What is nested too deep for the
// library counts as malformed, since the library reads it no further. Of the others the first in the body is returned;
// then a required member that is missing; then the errors of the method command.
//
// # Batches
//
// A single call and an item of a batch have the same checks. An invalid item does not affect the other items. Malformed
// JSON fails the batch as a whole. An item has two more rules: it has at most MaxBodySize bytes, else the code is
// body_too_large, and it has no member for waiting or for several locks.
package request
