// Package store is a paddock.Service on PostgreSQL. The service runs on it; a Go program can open it on its own database
// instead, see docs/embedding.md.
//
// # The parts
//
// Each is a package under internal/; docs/kernel.md draws a request from end to end. An arrow is an import:
//
//	store ─→ engine ─→ row, policy ─→ epoch ─→ database
//	      ─→ waiters, expiry ─→ row, database
//	      ─→ eventlog, sessions ─→ row, epoch, database
//	      ─→ cells ─→ policy, eventlog, epoch
//	      ─→ status ─→ database
//
//	database  connections, transactions, what errors mean
//	epoch     detects a fail-over or a restore, and excludes that it breaks a promise
//	policy    the trees, freezes and rules, and which groups are here, for a decision and for all replicas; their changes
//	cells     registers databases as cells, and moves groups between them
//	row       every statement and the codec of locks
//	engine    batches and the loop
//	waiters   requests that wait on this replica, heartbeats, notifications between replicas
//	eventlog  pages of events, subscribers
//	expiry    timers that sweep locks when time has changed them, and a scan for the locks of replicas that are gone
//	sessions  changes of sessions; ends the leases of sessions that have ended
//	status    how the database, its server and the replicas are, for operators
//
// waiters, eventlog and expiry do not know the engine. They are told what it decided (Store.publish), and they submit
// commands like any caller.
//
// # Promises
//
// Only the answer to a command is durable: it is given after the commit is confirmed, by a standby, too, where there
// is a synchronous one. A plain read may show a grant that no standby has confirmed, and may be out of date when it
// arrives. It shows a lease as over once it is past its end, although a renewal that was decided in time may still be
// committing; [Store.VerifyToken] waits for that.
//
// Notifications, timers, heartbeats and caches are hints. Without them calls are slower, not wrong.
package store
