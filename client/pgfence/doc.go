// Package pgfence runs pgx transactions that are fenced by a fencing token, so that a process whose
// lease has ended cannot write any more. It needs the SQL function paddock_fence in the database
// that holds the tables; the command paddock fence install creates it.
//
//	err := pgfence.Tx(ctx, pool, "accounts", token, func(tx pgx.Tx) error {
//		_, err := tx.Exec(ctx, "update accounts set balance = balance - 10 where id = 42")
//		return err
//	})
//	if errors.Is(err, lock.ErrStaleToken) {
//		// a later holder has written: this lease has ended, and nothing was committed
//	}
//
// Pass the context of the work, which ends when the lease is lost.
//
// # Guarantees
//
// A transaction whose token is lower than the greatest token seen for its resource commits nothing.
// Transactions that pass the fence run one after the other until their commits, and they commit in the
// order of their tokens. The database enforces this, so it also holds for paused processes and does
// not depend on clocks. Equal tokens pass: a holder may write as often as it likes. A transaction that
// rolls back does not record its token.
//
// Nothing is committed if the context ends before the commit was sent. A commit that was sent is
// never canceled: with synchronous replication, canceling would make a write visible that no standby
// has.
//
// # Limits
//
//   - The fence knows only the tokens it has seen, not all tokens granted. The first token for a
//     resource always passes, and a later holder that has not written yet blocks no earlier one. To
//     record a token early, run an empty Tx right after the grant.
//   - The isolation level is the database's default. Under READ COMMITTED, which PostgreSQL uses
//     unless configured otherwise, fn reads what earlier holders have committed. Under REPEATABLE READ
//     the order of commits is the same, but fn may read data from before the last of those commits,
//     because its snapshot was taken before the wait at the fence.
//   - Nothing is retried. Above READ COMMITTED, error 40001 (serialization_failure) means that the
//     caller may retry the whole transaction.
//   - The wait for an earlier transaction that has stopped in the middle is bounded only by ctx and by
//     the database's idle_in_transaction_session_timeout and lock_timeout. Set the former.
//   - The fence does not cover other effects of fn, such as files or HTTP calls.
//
// # Resources
//
// The resource is a name chosen by the user, 1 to 1000 bytes. It names what is written, such as a
// table, a row or a tenant, and not the lock. For permits, of which several are valid at a time, add
// the slot: "uploads:2". If several locks guard one resource, use that resource's name for all; of two
// concurrent holders, the fence then rejects the one that was granted first.
//
// [TxAll] passes the fences of several resources, such as those of locks that were acquired together.
//
// # Operations
//
// A token keeps out a worker whose lease has ended. It does not tell the next worker whether the last one has committed
// before it died. [Once] does: it takes the identity of the operation, such as the number of a booking, and runs the
// function unless a transaction with that identity is committed.
//
// docs/fencing explains how the fence works and what else the SQL functions can do.
package pgfence
