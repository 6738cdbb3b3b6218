// Package wire encodes and decodes the JSON of the API. The server, the client and the command line all use it, for
// single calls and for the items of a batch. Methods, paths and headers of HTTP are left to these packages.
//
// # Models
//
// models.gen.go has the types of openapi.yaml. It is generated; change the document and run go generate.
//
// # Decoding requests, strictly
//
// A [Decoder] reads the body of a request as a command of package lock. It accepts what openapi.yaml describes and
// nothing else. Every error is a *lock.Error with the code lock.ErrInvalid, and its Field names the invalid member:
//
//	input                                      Field of the error
//	nothing, not an object, not JSON           empty: the body as a whole
//	something after the object                 empty
//	a member twice                             the member
//	a member that this body does not have      the member, the first in alphabetical order
//	a member by a former name                  the former name; the detail has the new one
//	null, except for the value of a write      the member
//	a member that is missing                   the member
//	another type, a number out of range        the member
//	zero, where lock takes it for the default  the member
//	a name twice inside of free-form JSON      the free-form member
//	free-form JSON more than 32 levels deep    the free-form member
//
// Package lock checks all other bounds. A single call and an item of a batch have the same checks. An invalid item does
// not affect the other items. Malformed JSON fails the batch as a whole. An item has two more rules: it has at most
// MaxBodySize bytes, else the code is body_too_large, and it must not have wait_ms or keep_place.
//
// # Encoding
//
// The Append functions are fast paths for frequent messages: leases, results of a batch, and the requests acquire,
// renew and release. [Encode] encodes every model, most of them by reflection. Tests check that both write the same
// members.
//
// # Decoding answers, leniently
//
// [ParseLease], [ParseResults] and [Parse] decode answers. They ignore unknown members, so that the service can add
// members. They fail with [ErrNotTheAnswer] if the answer belongs to another request.
//
// # Conversion
//
// The domain is package lock. LeaseOf, LockOf and the other Of functions convert values of the domain to models. The
// method Domain of a model does the reverse. In JSON a time is in UTC, a duration is in whole milliseconds, and the
// remaining time of a lease is rounded down.
package wire

//go:generate go tool -modfile=../tools/go.mod oapi-codegen -config config.yaml ../../openapi.yaml
