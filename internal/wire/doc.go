// Package wire is the JSON of the API, once in Go. The server, the client and the command line use it for single
// calls and for the items of a batch alike. It knows nothing of HTTP: methods, paths, headers and statuses belong
// to its users.
//
// # Models
//
// models.gen.go has the types of openapi.yaml. It is generated; change the document and run go generate.
//
// # Requests, strictly
//
// A [Decoder] reads the body of a request as a command of package lock. It accepts what openapi.yaml describes and
// nothing else. Every error is a *lock.Error with the code lock.ErrInvalid, and its Field names the member at fault:
//
//	input                                      Field of the error
//	nothing, not an object, not JSON           none: the body as a whole
//	something after the object                 none
//	a member twice                             the member
//	a member that this body does not have      the member, the first in alphabetical order
//	a member by a name from before a rename    the old name; the detail has the new one
//	null, except for the value of a write      the member
//	a member that is missing                   the member
//	another type, a number out of range        the member
//	zero, where leaving it out means zero      the member
//	a name twice inside of free-form JSON      the member that is free-form
//	free-form JSON more than 32 levels deep    the member that is free-form
//
// Other bounds are the domain's to check. A single call and an item of a batch go through the same checks. A fault
// in one item is that item's error, and the other items are done. Only text in which no item's end can be found
// fails a batch as a whole. An item has two bounds more: at most MaxBodySize bytes (a code of its own,
// body_too_large), and no member that has to do with waiting.
//
// # Answers and requests, fast
//
// The Append functions write what is written thousands of times a second: leases, results of a batch, and the
// requests acquire, renew and release. [Encode] writes every model, by reflection where speed does not matter. Both
// write the same members; tests compare them.
//
// # Answers, leniently
//
// [ParseLease], [ParseResults] and [Parse] read answers. Unknown members are ignored, so that the service can add
// members. An answer that is not one to the request is an error.
//
// # The domain
//
// LeaseOf, LockOf and the other Of functions turn values of package lock into models. The method Domain of a model
// does the reverse. On the wire an instant is in UTC, a duration is in whole milliseconds, and what is left of a lease
// is rounded down.
package wire

//go:generate go tool oapi-codegen -config config.yaml ../../openapi.yaml
