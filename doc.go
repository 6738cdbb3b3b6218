// Package paddock is a lock service as a Go program sees it. [Service] is its interface: package store implements it on
// PostgreSQL, package client over HTTP, and package access lets each API key see its part. Beside it are the queries and
// pages of the service, batches, the timeline of a lock that its events tell, and reports of stale tokens.
//
// The rules are in package lock; begin reading there. cmd/paddock is the binary.
//
// The package also embeds openapi.yaml, the SQL of the fence for users' tables, and the licenses.
package paddock
