// Package integration tests the client and the guards against the real service on PostgreSQL.
//
// The tests are not in these packages, because `go mod tidy` downloads what the tests of an imported package need: for
// a program with the Go SDK that would be the server and the PostgreSQL driver.
package integration
