// Package contract compares what the server receives and answers with openapi.yaml. It contains only tests.
//
// TestEveryExchangeMatchesTheDocument runs all tests of package server, which record each request and its answer, and
// each event of a stream. It checks the recorded exchanges with kin-openapi:
//
//   - an answer has a status, a type, headers and a body that the document has for this operation;
//   - a request that the server accepted is one that the document allows;
//   - a body has no member that the document does not name.
//
// It fails if a test of package server fails, and if no test calls an operation of the document with success.
package contract
