// Package conformance runs the conformance suite of [lock.Service] on clients in more situations than package client
// does: at several replicas, with an API key, and beside other calls. It contains only tests.
package conformance
