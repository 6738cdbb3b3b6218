// Package wire converts between the domain, package lock, and the models of openapi.yaml, package api. It encodes both
// and decodes answers. The server, the client and the command line all use it, for single calls and for the items of a
// batch. Methods, paths and headers of HTTP are left to these packages, except the header that marks the answers of
// the service, [HeaderAPI]. Package request decodes requests.
//
// # Encoding
//
// The Append functions are fast paths for frequent messages: leases, results of a batch, and the requests acquire,
// renew and release. [Encode] encodes every model, most of them by reflection. Tests check that both write the same
// members.
//
// # Decoding answers, leniently
//
// [ParseLease], [ParseSession], [ParseResults] and [Parse] decode answers into models with encoding/json. They ignore
// unknown members, so that the service can add members. They fail with [ErrNotTheAnswer] if the answer belongs to
// another request.
//
// # Conversion
//
// LeaseOf, LockOf and the other Of functions convert values of the domain to models. ToLock and the other To functions
// do the reverse. In JSON a time is in UTC, a duration is in whole milliseconds, and the remaining time of a lease is
// rounded down.
package wire
