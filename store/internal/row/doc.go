// Package row reads and writes locks as rows of PostgreSQL. It contains every statement that decisions need, and the
// one codec between rows and package lock. It decides nothing.
//
// # Tables
//
//	paddock.records        one row a lock, with its exclusive lease
//	paddock.parts          shared leases and permits, each in a slot from 1 on; waiters, in slot 0, each with a place
//	paddock.event_batches  one row a commit, with its events
//	paddock.event_refs     finds the event that ended a lease, and every 16th event of a lock
//
// Each change of a lock, also of its parts only, writes its record.
//
// # Compare and swap
//
// A [Row] is a lock as it was read or written, with its version: the position of its record (ctid), and the
// transaction that wrote it (xmin). A [Swap] writes locks only if their records still have that version. That proves
// all of the Row: an xmin belongs to one transaction, every change writes the record, and VACUUM moves nothing. After
// 2^32 transactions an xmin returns; a Row that old would be written wrongly only if the transaction with exactly that
// number had written the same lock to the same position. VACUUM FULL and CLUSTER move rows, so the comparison fails
// and the lock is read again. A lock that was pruned and used again has another version, too.
//
// A Swap is one statement, and by itself one transaction. It writes nothing unless
//
//   - the epoch is the one of the decision, and the server is the one that the Rows were read from (its start time);
//   - the database's clock is at or after the instant of the decision, and at most [MaxLag] after it;
//   - for each lock: no lease that the decision changes or grants is over, nor are all those whose token a grant
//     shares. The clock is read again when the row is locked, because the statement may have waited for it. If one is
//     over by then, the statement raises PD001, and writes nothing at all.
//
// # Tokens
//
// The tokens that a Swap grants are those of its row of events: the id of the row times [TokensPerBatch] plus 0, 1 and
// so on. The statement draws the id, so none is kept: a grant that was requested after another one was answered has a
// greater token, whatever the locks and replicas. A decision is made with provisional tokens, see lock.Provisional; the
// statement writes the known ones, and the engine puts them into the answers. The id is drawn before rows are locked.
// As the Row is compared when it is written, no other grant lies in between, and the tokens of a lock grow.
//
// # Events
//
// The events of a commit are one row. An event's id is that of its row times [EventsPerBatch] plus its number there.
// The id is drawn before rows are locked. As for tokens, the comparison of versions keeps the events of one lock in
// order. Before that the statement takes a mark, by which readers know that events may be missing, see package
// eventlog.
package row
