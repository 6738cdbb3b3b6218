// Package sessions keeps sessions: it decides on their changes, and ends the leases and places of those that have
// ended.
//
// Package lock has the rules. A change of a session locks its row, reads the clock, decides and writes, in one
// transaction beside those of the locks. So a heartbeat writes one row, whatever the session keeps alive, and counts
// nothing. It tells how many leases of the session were revoked alone: the swap that writes a revocation adds to that.
//
// # How a session ends
//
//	   renewed
//	┌─────────┐
//	│         ▼      over by the clock, closed, or revoked          nothing left
//	└─────── open ────────────────────────────────────────▶ ended ───────────────▶ cleared ──▶ deleted
//
// The end of a session is recorded in its row before it has an effect on any lock: by a Keeper, or by the first
// decision on one of its locks that finds it over. Recording takes the lock of the row that a heartbeat holds until
// its commit is confirmed. So there is no heartbeat that is told "renewed" while a decision elsewhere says "expired".
//
// A session that expired ends its leases by that fact alone: every decision on their locks sees it. A closed or a
// revoked one does not, since decisions elsewhere may rely on what they have read of it; its leases are ended one by
// one, by commands on their locks. In both cases the Keeper of each replica finds what is left of sessions that have
// ended, and submits a lock.EndSession for each lock. That records the ends and promotes waiters.
//
// # Promises
//
//   - What a session has when its end is recorded is ended within a second or so while any replica runs.
//   - A grant in a session locks the session's row until its commit, see row/sql/swap.sql, and so does the end of a
//     session. So each grant is committed before the end, which then finds it, or not at all: when the end is answered,
//     nothing is held in the session, and nothing will be.
package sessions
