// Package web is the admin page: what is held, by whom, for how long still, who
// waits for it and for what, and a way to revoke a lease. It sits in front of any
// [lock.Service] and knows its reader by the API key in the context, if there is one
// (package access).
//
//	GET  /ui/                          the locks; ?prefix= &state= &holder= &cursor= &refresh=5
//	GET  /ui/locks/{name}              one lock: its leases, its queue, what happens; ?all=1 &refresh=5 &back=
//	GET  /ui/login                     asks for an API key; ?why= &back=
//	GET  /ui/revoke                    asks before it revokes; ?name= &token= &slot= &since= &back=
//	POST /ui/revoke                    revokes, then leads back to where it was asked for
//	GET  /ui/assets/{version}/{file}   style sheets, scripts and icon
//
// # The page and the script
//
// Every page is whole as the server sends it; the script only makes it handier. It
// lets the time left run down, asks before a revoke in a dialog rather than on a
// page of its own, and keeps the page fresh. It counts from when the answer came,
// by the browser's monotonic clock, and never looks at the wall clock of the person
// who reads: instants are the database's. Where no script runs, refresh=5 has the
// browser load the page every five seconds.
//
// # Live
//
// The script follows /v1/events/stream of the same origin, which is for whoever
// mounts this to serve. An event, sync or gap has the page fetched anew, at most
// twice a second and one request at a time, and what is other in it is put in
// place; the focus, what is selected, opened or typed stays. A page says
//
//	live            all that the stream has told is shown
//	connecting…     not yet
//	not connected   the stream is away; tried again for as long as the page is open
//	not refreshed   the stream is there, and the page could not be fetched
//	paused          the reader wants it so
//
// and the last three say as of when it is. Renewals are no events: the page
// is fetched anew every ten seconds besides, and when the time of something on it
// has run down. While it is not live it is so every five seconds. Hence a
// connection that is dead and does not know makes it ten seconds old, not more. A
// page that is not in view lets go of its connection, since over HTTP/1.1 browsers
// have six for one server.
//
// # Whom it trusts
//
// Holders, metadata and reasons are text that anybody may have chosen. They are
// shown as text, each in a box of its own so that characters which turn the
// direction of writing cannot reach beyond it. No script and no style runs that is
// not a file of this package, nothing is loaded from elsewhere, nobody may frame
// the page, and a POST from another origin is refused. No lease_id gets here,
// since neither a [lock.Lock] nor a [lock.Queue] has one.
//
// # Who reads
//
// Where the service asks for keys, whoever mounts this lets nobody through to it without
// a good one, but to the form of /ui/login and the assets, and puts the key into the
// context. The form posts key and back to its own address, and that of every page posts
// to /ui/logout: both are for whoever mounts this to read, so that no key and no
// cookie gets here. A page says whose key it is shown to, offers to revoke to those alone
// who may, and lists what the key covers where it is asked for more. The lock.Service,
// which is an access.Guard then, refuses all that is not allowed, and the page shows
// why. A reader whose key is good no longer is led to the form, at the next refresh
// at the latest.
//
// # Not given
//
// Where no keys are asked for, whoever reaches the page may revoke. A page is true as of the instant that it names, and a lease
// shown as ended may have been renewed since. The leases and the queue of a lock are
// looked at one after the other, so for a moment one may be in both, or in
// neither. Of what happened it tells what happens while the page is in view, the
// last twenty; the whole of it is at /v1/events. That a shared lease is the one that
// was asked about is checked before it is revoked, not with it.
package web
