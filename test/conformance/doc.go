// Package conformance runs the conformance suite of [paddock.Service] on clients in more situations than package client
// does: with an API key, and beside other calls. Package deployment runs it on two replicas. Both contain only tests.
package conformance
