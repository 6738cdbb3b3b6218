// Package front serves a lease.Store over HTTP and JSON, like a lock service written in an afternoon:
// net/http, encoding/json, and one call of the store per request.
//
// A front is a separate process, so that its CPU time is measured apart from that of the load. The
// system starts its own program again, and there Run serves.
//
//	POST /acquire {"name":"n","wait":true}   201 {"id":"…","token":7}   409 held
//	POST /renew   {"name":"n","id":"…"}      204                        409 lost
//	POST /release {"name":"n","id":"…"}      204                        409 lost
package front
