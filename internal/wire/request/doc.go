// Package request decodes the JSON bodies of requests, strictly: it accepts what openapi.yaml describes and nothing
// else. Only the server uses it. Package wire has the models and encodes requests.
//
// A [Decoder] returns a body as a command of package lock. Every error is a *lock.Error with the code lock.ErrInvalid,
// and its Field names the invalid member, as a JSON Pointer without the first slash, such as locks/3/name:
//
//	input                                      Field of the error
//	nothing, not an object, not JSON           empty: the body as a whole
//	something after the object                 empty
//	a member twice                             the member
//	an element of a list of another type       the element
//	a member that this body does not have      the member, the first in alphabetical order
//	a member by a former name                  the former name; the detail has the new one
//	null, except for the value of a write      the member
//	a member that is missing                   the member
//	another type, a number out of range        the member
//	zero, where lock takes it for the default  the member
//	a name twice inside of free-form JSON      the free-form member
//	free-form JSON more than 32 levels deep    the free-form member
//
// Package lock checks all other bounds. A single call and an item of a batch have the same checks. An invalid item
// does not affect the other items. Malformed JSON fails the batch as a whole. An item has two more rules: it has at
// most MaxBodySize bytes, else the code is body_too_large, and it must not have wait_ms or keep_place.
package request
