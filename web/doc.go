// Package web is the admin page. It shows which locks are held, by which holders and for how much longer, and which
// waiters wait for what. It can revoke leases and sessions, declare and remove trees, and freeze and thaw locks. It
// works with any [paddock.Service], and takes the user's API key from the context, if there is one (package access).
//
//	GET  /ui/                          the locks; ?q= &prefix= &state= &holder= &contended= &sort= &cursor= &trail= &refresh=5
//	GET  /ui/locks/{name}              a lock: its leases, its queue, its past; ?all=1 &past= &refresh=5 &back=
//	GET  /ui/events                    the events over all locks, newest first; ?kind= &prefix= &holder= &around= &since= &until= &cursor= &trail=
//	GET  /ui/holder?holder=            a holder: its leases, waits, sessions and last losses
//	GET  /ui/sessions                  the sessions that have not ended; ?holder= &cursor= &trail=
//	GET  /ui/sessions/{session}        a session: its leases and places, the form to revoke it; ?all=1 &revoked=1
//	POST /ui/sessions/{session}        revokes the session, then redirects to its page
//	GET  /ui/trees                     the declared trees, the form to declare one; ?removed=
//	POST /ui/trees                     declares a tree, then redirects to its page
//	GET  /ui/trees/{root}              a tree: what is held and waited for in it, the form to remove it; ?declared=1
//	POST /ui/trees/{root}              removes the tree, then redirects to the list
//	GET  /ui/freezes                   the freezes in force, the form to freeze; ?scope= &thawed=
//	POST /ui/freezes                   freezes the locks of a scope, then redirects to the freeze's page
//	GET  /ui/freezes/{scope}           a freeze: how many leases are left, the form to thaw; ?begun=1
//	POST /ui/freezes/{scope}           thaws, then redirects to the list
//	GET  /ui/rules                     the rules
//	GET  /ui/service                   how the service is: its replicas, databases and settings
//	GET  /ui/login                     the sign-in form; ?why= &back=
//	GET  /ui/revoke                    the form to confirm a revocation; ?name= &token= &slot= &since= &back=
//	POST /ui/revoke                    revokes, then redirects back
//	POST /ui/revocations               asks to confirm the revocation of the selected leases; with a reason, revokes them
//	GET  /ui/assets/{version}/{file}   style sheets, scripts and the icon
//
// # JavaScript
//
// Every page is complete without JavaScript. The script counts down the time left, confirms most revocations in a
// dialog instead of on their own page, and refreshes the page. It counts from when the answer arrived, on the
// browser's monotonic clock. It never uses the browser's wall clock: times are the database's. They are in UTC; the
// script can show them in the browser's time zone. Without JavaScript, refresh=5 makes the browser reload the page
// every five seconds. The page of the rules has no script: it shows the state as of when it was loaded, in UTC.
//
// The key / goes to the search, and the arrows up and down go from lock to lock, or from box to box. While the page
// changes, the row under the pointer stays where it is, or else the first visible one of a page that is scrolled. A table
// that has its newest rows first does not change while it has that row: the page says how many newer ones there are, and
// shows them when the pointer leaves or the page is back at the top.
//
// A form's control has no name of a method of forms: the browser would hide the method behind the control. So the search
// is the parameter q.
//
// # The counts over all locks
//
// The list begins with an [Overview], if Options has one and the user's key covers all names. It is counted by the
// service in the background, so it may be seconds older than the list below it, or minutes with very many locks, and
// the page says how old. The losses are counted by one replica since its start, and the page says for how long.
//
// # The past of a lock
//
// A lock's page shows its last events, and a timeline of the leases and waits that [paddock.TimelineOf] finds in them.
// The timeline is a table with a bar in each row, drawn in SVG by the server: its colour is that of the end, which the
// row also names. past=ID shows the events before that one.
//
// # Events
//
// The page of the events takes the kinds of the API, and deadlock: calls that left a queue to break a deadlock, with the
// circle. A page of events reads a bounded part of them, see [paddock.Page]: if it finds too few there, it says how far it
// has searched, and offers to go on. A time is in UTC: an instant, a time of the last 24 hours, or how long ago it was.
// Around an instant are five minutes before and after it. The page has a stream unless it is of the past. For readers of
// the page of the service it shows each epoch that began in its part of the range, in its place by time; for others that one
// began, where the ids of its events jump. With several databases it shows neither.
//
// # Holders
//
// Each holder is a link to its page. The service finds leases and sessions by holder, but no waits: the page finds them in
// the last 200 events of the holder, in 20 queues at most. A call that waits below a lock of a tree is shown at its own
// lock.
//
// # Sets
//
// A lock's page names the other locks of a lease or a waiter of a set, and the list marks such leases. If the first
// waiter at a free lock belongs to a set, it waits for the other locks of the set, unless grants are paused. Revoking
// a lease of a set ends the leases of all its locks. So the revocation is confirmed on the form's own page, which
// names these locks, and never in the dialog. The service hides names that the user's key does not cover; the page
// shows only how many there are.
//
// # Trees
//
// The page of a lock in a tree shows the leases above and below it, and says when the lock is free, but cannot be
// acquired because of them. A waiter in the queue of a lock above names the lock that it waits for. The page of a tree
// draws the locks that are held or waited for, at most 200, those that were acquired first. For a key that covers only
// parts of the tree it draws these parts, at most ten.
//
// # Closed and frozen locks
//
// The list and a lock's page mark a lock that a release has closed as done, and one that an operator has frozen. Such a
// lock may be free, and is granted to no client. The page says who, until when, and why it is frozen, and links to the
// freeze if the user's key covers its whole scope. The page of a freeze shows how many leases are left.
//
// While a database grants nothing, because an epoch has begun, every page begins with that: for how much longer, and for
// readers of the page of the service why, and how to end it earlier. The page of a lock says it of the lock, too.
//
// # The service
//
// The page of the service is for admins whose keys cover all names, and so are the links to it. It shows what Options.Info
// knows, and answers while a database is away:
//
//	the database                  its part of the page
//	was read                      all of it, as of the time at the top
//	was read earlier, and is away what was read, in grey, how old that is, and why there is nothing newer; of other replicas, that
//	                              nothing is heard of them
//	was never read                why
//	is a standby                  that nothing can be written
//	has paused grants             for how much longer, until when, and why
//
// What cannot be seen is named with the right that is missing. Every other page that the service cannot answer links to it.
//
// # Live updates
//
// All pages but those of the rules and the forms are live. The script subscribes to /v1/events/stream of the same origin, which the server that mounts this package must serve.
// On an event, sync, gap or unreadable it fetches the page again, at most once a second and one request at a time, and
// changes only what differs: focus, selection, open details and typed text stay. The page shows its state:
//
//	live            everything that the stream has sent is shown
//	connecting…     not yet
//	12 newer        so many rows wait until the pointer leaves the table, or the page is scrolled back to its top
//	not connected   the stream is down; the script reconnects while the page is open
//	not refreshed   the stream is up, but the page could not be fetched
//	no answer       the page was not answered yet, two seconds after it was due
//	paused          the user has paused it
//
// A page without a stream is refreshed every five seconds, and says so: those of the trees and of the service, which have no
// events, and a page about names that the user's key does not cover as a whole. The page of a session uses only the events
// of its holder.
//
// The last four also show how old the data are. A renewal is no event, and the stream of a lock's page has no events
// of the locks above and below, nor of a freeze with another name. So the page is also fetched every four seconds, and
// when a time on it has run down; every five seconds while it is not live. Whatever is stuck, a page that says live is six
// seconds old at most. A hidden page closes its connection, because browsers open at most six HTTP/1.1 connections to a
// server.
//
// Viewers of one URL with one key share its renderings, one a second at most, or two at once after a rest. A request gets
// one that has begun after it, so the page is never older than without that.
//
// # Untrusted text
//
// Holders, metadata and reasons are untrusted. They are shown as text, each in an element of its own so that
// characters that change the text direction cannot affect other text. The Content-Security-Policy allows no inline
// script or style and no other origin, and forbids framing. Writes from other origins are refused. The page never has
// a lease_id, because neither a [lock.Lock] nor a [lock.QueueInfo] has one, and never a session_id: a
// [lock.SessionInfo] has none, and a page does not repeat a malformed name of a session from its URL, since it may be
// a session_id.
//
// # Users
//
// If the service requires API keys, the server that mounts this package authenticates every request except /ui/login
// and the assets, and puts the key into the context. It also handles the POST of the sign-in form, and POST
// /ui/logout, so this package sees no secret and no cookie. A page shows the name of the user's key, offers to revoke
// only to keys with the role admin, and narrows the list to what the key covers. The list of sessions, and revoking
// one, are offered only to keys for all names; a session's page shows others no name of a lock that they do not cover.
// Removing a tree is offered only to admins whose keys cover its root, ending a freeze to admins whose keys cover its
// scope.
// The paddock.Service, an access.Guard, refuses what the key does not allow, and the page shows the reason. A user whose
// key is no longer valid is redirected to the form at the next refresh at the latest.
//
// # Not guaranteed
//
// Without API keys, every user may revoke. A page shows the state at the time that it names; a lease shown as ended
// may have been renewed since. Leases and queue of a lock are read one after the other, so a waiter may briefly appear
// in both or neither. The timeline knows only the last hundred events; all that are kept are at /v1/events. Whether a
// shared lease is still the one shown is checked before the revocation, not atomically with it. The last heartbeat of
// a session is its end less its TTL. It was earlier if it shortened the TTL, or if a fail-over has extended the
// session since.
package web
