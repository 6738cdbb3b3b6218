// Package epoch detects that the database was failed over or restored, and starts a new epoch then.
//
// # Terms
//
// An epoch is a part of the history of the locks: what happened on one server, on one timeline of its log. Its row in
// paddock.epochs names both. Only the newest epoch matters for decisions; the others are for operators.
//
//	here        the newest epoch describes this server and its present timeline
//	longest     the greatest length, TTL plus grace, of all leases ever granted; recorded before the first such lease
//	            is granted
//	paused      nothing is granted until ClosedUntil, because a lease that the database has lost may still be active
//	quorum      nothing is decided unless the server waits for standbys, so a fail-over to one of them loses nothing
//
// A [Known] is what this process remembers. It outlives a database that has lost a part of its history. The [Monitor]
// keeps it.
//
// # Changes
//
//	             fail-over or restore, found by Check,
//	+----------+ or an operator's Begin                         +-------------------------+
//	|          | ---------------------------------------------> |                         |
//	| granting |                                                | next epoch, paused for  |
//	|          | <--------------------------------------------- | the longest lease       |
//	+----------+   ClosedUntil passes, or an operator's Open    +-------------------------+
//
// With a quorum there is no pause, unless an operator has started the epoch.
//
// [Epoch.Check] compares an Epoch, which a transaction has read, with what was known before. If it returns an error,
// the transaction must not decide, and [Monitor.Recover] does what helps. What a replica does with an epoch:
//
//	                 nil
//	read ─→ Check ─────────→ decide ─→ commit ─→ Observe: the next Check knows of it
//	  ▲       │                │
//	  │       │ ErrChanged     │ a lease is longer than all before: LongerError
//	  │       │ ErrLengthLost  │
//	  │       ▼                ▼
//	  └──── Recover: under the lock of the epochs, read and Check again, since another replica may have been first. Then
//	          ErrChanged       start the next epoch
//	          ErrLengthLost    extend the pause
//	          LongerError      record the length
//
// [Monitor.Poll] does the same twice a second, although no command arrives.
//
// # Promises
//
//   - An epoch is started by one transaction, which excludes concurrent ones. The process that comes second finds it
//     started.
//   - Event batches, and tokens with them, continue far above all that the database or the starting process knows, see
//     [BatchJump]. So no token that was lost is granted again.
//   - Each lease has its whole TTL from then on, on the clock of the new server. A lease that was over by the last
//     known instant of the old clock stays over. A revoked lease whose grace was not over has its whole grace again. A
//     max hold keeps the time that was used. An unclaimed grant returns to the queue. A session has its whole TTL, too,
//     and its leases with it.
//   - Every record with a lease or a waiter is written, so no state from an earlier epoch can be swapped in.
//   - Nothing is granted for as long as a lost lease could be active.
//
// The package cannot detect the loss of the first lease of a new greatest length together with every process that knew
// of it, nor a restore while no process runs: see docs/design/epochs.md.
package epoch
