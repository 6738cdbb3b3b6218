// Package lean is an HTTP/1.1 client that uses little CPU time, so that the load generator leaves the
// processors to the measured servers. The client of net/http uses more than twice as much.
//
// It sends one request at a time over one persistent connection. It reads responses with a length,
// chunked responses, and responses that end with the connection. It does not support redirects,
// compression, TLS or proxies, and it never repeats a request.
package lean
