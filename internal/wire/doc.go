// Package wire encodes the JSON of the API and decodes answers. The server, the client and the command line all use
// it, for single calls and for the items of a batch. Methods, paths and headers of HTTP are left to these packages, except
// the header that marks the answers of the service, [HeaderAPI].
// Package request decodes requests.
//
// Programs link this package through the client, so its only dependency beside the standard library is google/uuid.
//
// # Models
//
// models.gen.go has the types of openapi.yaml. It is generated; change the document and run go generate.
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
// The domain is package lock. LeaseOf, LockOf and the other Of functions convert values of the domain to models. The
// method Domain of a model does the reverse. In JSON a time is in UTC, a duration is in whole milliseconds, and the
// remaining time of a lease is rounded down.
package wire

//go:generate go tool -modfile=../tools/go.mod oapi-codegen -config config.yaml ../../openapi.yaml
