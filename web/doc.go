// Package web is the admin page: what is held, by whom, for how long still, and
// a way to revoke a lease. It sits in front of any [lock.Service] and imports
// nothing but that and the standard library.
//
//	GET  /ui/                 the locks; ?prefix= &state= &holder= &cursor= &refresh=5
//	GET  /ui/revoke           asks before it revokes; ?name= &token=
//	POST /ui/revoke           revokes, then leads back to the locks
//	GET  /ui/assets/{file}    style sheet, script and icon
//
// # The page and the script
//
// Every page is whole as the server sends it; the script only makes it handier.
// It lets the time left run down, asks before a revoke in a dialog rather than on
// a page of its own, and fetches the list anew every five seconds if told to. It
// counts from when the answer came, by the browser's monotonic clock, and never
// looks at the wall clock of the person who reads: instants are the database's.
//
// # Whom it trusts
//
// Holders, metadata and reasons are text that anybody may have chosen. They are
// shown as text, each in a box of its own so that characters which turn the
// direction of writing cannot reach beyond it. No script and no style runs that is
// not a file of this package, nothing is loaded from elsewhere, nobody may frame
// the page, and a POST from another origin is refused. No lease_id gets here,
// since a [lock.Lock] has none.
//
// # Not given
//
// It knows no users: whoever reaches it may revoke. Keeping others out is for
// whoever mounts it. A list is true as of the instant that it names, and a lease
// shown as ended may have been renewed since.
package web
