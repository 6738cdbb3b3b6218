// Package lease contains what lease stores without a queue share: a client for one goroutine, and
// waiting by polling.
package lease
