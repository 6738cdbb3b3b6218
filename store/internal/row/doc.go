// Package row reads and writes locks as rows of PostgreSQL. It contains every statement that decisions need, and the
// one codec between rows and package lock. It decides nothing.
//
// # Tables
//
//	paddock.records        one row a lock, with the lease in slot 0 or 1 as long as that has the newest token
//	paddock.parts          the other leases, each in a slot from 1 on; waiters, in slot 0, each with a place
//	paddock.event_batches  one row a commit, with its events
//	paddock.event_refs     finds the event that ended a lease, and every 16th event of a lock
//
// Each change of a lock, also of its parts only, writes its record.
//
// # Compare and swap
//
// A [Row] is a lock as it was read or written, with its version: the position of its record (ctid), and the
// transaction that wrote it (xmin). A [Swap] writes locks only if their records still have that version. That proves
// what the Row has of the record and its parts: an xmin belongs to one transaction, every change writes the record, and
// VACUUM moves nothing. After
// 2^32 transactions an xmin returns; a Row that old would be written wrongly only if the transaction with exactly that
// number had written the same lock to the same position. VACUUM FULL and CLUSTER move rows, so the comparison fails
// and the lock is read again. A lock that was pruned and used again has another version, too.
//
// Not proven are the heartbeats of replicas and the ends of sessions, which are in rows of their own. An old heartbeat
// costs only order: a waiter is skipped, or is granted a lock that it does not claim. The end of a session only moves
// forward until it is recorded, under the lock of the session's row, and it has no effect before: see
// docs/design/sessions.md.
//
// A Swap is one statement, and by itself one transaction: sql/swap.sql. testdata/swap.sql has it as PostgreSQL gets it,
// for one lock and for everything. It writes nothing unless
//
//   - the epoch is the one of the decision, and the server is the one that the Rows were read from (its start time);
//   - the database's clock is at or after the instant of the decision, and at most [MaxLag] after it unless the look has
//     locked the rows;
//   - for each lock: no lease that the decision changes or grants is over, nor are all those whose token a grant
//     shares. A lock for which that is so when the statement begins is left out, like one that has another version. The
//     clock is read again when the row is locked, because the statement may have waited for it. If one is over by then,
//     the statement raises PD001, and writes nothing at all;
//   - the sessions that acquires rely on are open. If one is not, it raises PD001, too.
//
// # Tokens
//
// The tokens that a Swap grants are those of its row of events: the id of the row times [TokensPerBatch] plus 0, 1 and
// so on. The statement draws the id, so none is kept: a grant that was requested after another one was answered has a
// greater token, whatever the locks and replicas. A decision is made with provisional tokens, see lock.Provisional; the
// statement writes the known ones, and the engine puts them into the answers. The tokens of a lock grow, since no other
// grant of it lies between the drawing of the id and the writing of the row. If the look has locked the row, it was
// locked before the id is drawn, and stays locked until the commit. Otherwise it is locked after that, and its version
// is compared then.
//
// # Events
//
// The events of a commit are one row. An event's id is that of its row times [EventsPerBatch] plus its number there.
// The events of one lock are in order for the same reason as its tokens. Before the id is drawn, the statement takes a
// mark, by which readers know that events may be missing, see package eventlog.
package row
