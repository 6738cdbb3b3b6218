// Package pgfence writes to tables of one's own under a fencing token, for users
// of pgx. It needs the SQL function paddock_fence in the database that holds the
// tables: paddock fence install puts it there.
//
//	err := pgfence.Tx(ctx, pool, "accounts", token, func(tx pgx.Tx) error {
//		_, err := tx.Exec(ctx, "update accounts set balance = balance - 10 where id = 42")
//		return err
//	})
//	if errors.Is(err, lock.ErrStaleToken) {
//		// a later holder was here: the lease is gone, and nothing was written
//	}
//
// Give it the context that the work has, which ends when the lease is lost.
//
// # Promised
//
// A transaction whose token is lower than one seen for its resource commits
// nothing. Those that pass run one after the other, from the fence to the commit,
// and commit in the order of their tokens; that is the database's doing, so it
// holds for paused processes and whatever their clocks say. Equal tokens pass: a
// holder writes as often as it likes. A transaction that rolls back leaves no
// token behind.
//
// Nothing is committed once the context has ended before the commit was sent. A
// commit that was sent is never cancelled: with synchronous replication that
// would show a write which no standby has.
//
// # Not promised
//
//   - The first token that a resource ever sees passes, whatever it is. A later
//     holder that has not written yet keeps nobody out: what counts is what was
//     seen, not what was granted. A Tx that does nothing, right after the grant,
//     shows the token early.
//   - The isolation level is the database's default. Under READ COMMITTED, which
//     it is unless somebody changed it, what fn reads is what the holders before
//     have left. Under REPEATABLE READ the order holds as well, but fn may see the
//     data as it was before the last of them committed, because the picture was
//     taken before the wait.
//   - Nothing is retried. Above READ COMMITTED, 40001 (serialization_failure) says
//     that the whole may be tried again, and that is up to the caller.
//   - There is no bound on the wait for a predecessor that is stopped in the middle
//     of its transaction, but ctx and the database's own
//     idle_in_transaction_session_timeout and lock_timeout. Set the former.
//   - What fn does elsewhere, in files or by HTTP, the fence knows nothing of.
//
// # Resources
//
// The resource is a name of the user's choice, 1 to 1000 bytes: that of the thing
// written, be it a table, a row or a tenant, and not that of the lock. For
// permits, which are several at a time, name the slot too: "uploads:2". Where
// several locks guard one thing it is still the thing that is named, and of two
// holders at once the fence shuts out the one that was granted first.
//
// docs/fencing tells how it works, and what else the SQL can do.
package pgfence
