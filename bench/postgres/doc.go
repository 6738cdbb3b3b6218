// Package postgres measures locks that others build on PostgreSQL, and has the database that
// all of the bench's systems use which need one: Paddock's, too, so that none has better
// settings than another.
//
// The systems are
//
//   - pglock, the package cirello.io/pglock. It keeps a lock as a row that is inserted, or
//     updated where it is free, and deleted in the end. Its driver is pgx, with which it is
//     twice as fast as with lib/pq. It would wait for as long as a lease lasts between one try
//     and the next, and is polled instead, though so it never takes over from a holder that
//     died. It would send a heartbeat as soon as a lock is taken, and is renewed when asked.
//   - one transaction a request, what most write who have a database and need a lock: a row is
//     locked, looked at, and updated. It is called in process, and behind a Go HTTP handler.
//   - PostgreSQL's advisory locks. They are in memory only, have no token, and are held by a
//     connection as long as that lasts.
package postgres
