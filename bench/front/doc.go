// Package front puts HTTP and JSON before a store of leases: what somebody writes in an
// afternoon who has such a store and wants a service. It is net/http, encoding/json, and one
// call of the store a request, nothing that is in the way.
//
// A front is a process of its own, so that its cost can be told from that of the load: the
// program that calls Start is run once more, and there Run serves.
//
//	POST /acquire {"name":"n","wait":true}   201 {"id":"…","token":7}   409 held
//	POST /renew   {"name":"n","id":"…"}      204                        409 lost
//	POST /release {"name":"n","id":"…"}      204                        409 lost
package front
