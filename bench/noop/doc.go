// Package noop measures the cost of HTTP alone: a net/http handler in its own process that returns
// responses like Paddock's, of the same length, and does nothing else. It is an upper bound for services
// on net/http.
package noop
