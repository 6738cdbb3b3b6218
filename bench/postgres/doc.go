// Package postgres measures other locks that are built on PostgreSQL. It also starts the database of
// every system that needs one, including Paddock, so that all have the same settings.
//
// The systems are:
//
//   - pglock, the package cirello.io/pglock. A lock is a row that is inserted, or updated if it is free,
//     and finally deleted. The driver is pgx, which makes it twice as fast as lib/pq. By itself, pglock
//     waits for a full lease time between two attempts; the bench polls instead, although pglock then
//     never takes over from a holder that died. Its automatic heartbeats are off; leases are renewed on
//     request.
//   - One transaction per request, the usual self-made lock: a row is locked, checked and updated. It
//     is called in process, and behind a Go HTTP handler.
//   - PostgreSQL's advisory locks. They are in memory only, have no token, and are held as long as their
//     connection lasts.
package postgres
