// Package lean is an HTTP/1.1 client that costs little, so that a load leaves the processors to
// the servers that it is to measure. The client of net/http costs more than twice as much.
//
// It sends one request at a time over one connection that it keeps, and reads answers that have
// a length, that are chunked, or that end with the connection. It knows no redirects, no
// compression, no TLS, no proxies, and never sends a request twice.
package lean
