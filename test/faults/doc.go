// Package faults breaks a deployment of Paddock while many clients use it, and checks
// what they were told: real processes, real PostgreSQL servers, real signals. It holds
// tests only.
//
// TestNothingIsLostUnderFaults is what this comment is about. Beside it,
// TestTheDatabaseMayBeAnother has standbys promoted and backups restored,
// TestTheCheckerFindsWhatIsBroken proves on broken builds of Paddock that a violation
// would be found, TestSubscribersBearCrashes counts what readers of events miss in crashes
// of PostgreSQL (-faults.crashes=20 for many), and TestAFloodIsBorne has too many clients
// come at once. TestARestoreIsNoticed and TestANoisyNeighbourIsBorne are described below.
//
// # The run
//
//	go test ./test/faults -run TestNothingIsLostUnderFaults -v -faults.for=2m
//
// has three replicas of paddock serve on a PostgreSQL of its own, and clients that do to
// them what package load says. Between clients and replicas, and between replicas and
// PostgreSQL, everything passes through toxiproxy:
//
//	clients ──▶ line ──▶ replica 1 ──────────────▶ line ──▶ PostgreSQL
//	        ──▶ line ──▶ replica 2 (an hour fast) ─▶ line ──▶
//	        ──▶ line ──▶ replica 3 (an hour slow) ─▶ line ──▶
//
// The second replica also runs four batches side by side, the third does not hear of the
// others. The addresses stay, also while what they lead to is gone.
//
// Nothing is mended while it is broken, and the next thing is broken only when the
// service is under load again: twenty calls a second must have been answered. A run that
// does not get there within half a minute fails.
//
// # What is broken, and how
//
//   - Replicas: killed, told to stop, stopped in their tracks for up to four seconds (a
//     few times the TTL); one, or all at once. A supervisor starts them again.
//   - PostgreSQL: killed, stopped without a checkpoint, restarted, stopped in its tracks;
//     one backend killed, so that it recovers; all backends terminated; all statements
//     cancelled; commits that wait for a standby that is not there. Two of three crashes
//     come in a lull of the load (see package load), when nothing is flushed.
//   - What others do there: they lock a row, or a table, idle in a transaction with an
//     old snapshot, take all connections that there are.
//   - Lines: connections reset; slow, or in pieces of a few bytes; requests, answers or
//     both swallowed on connections that stay open; requests or answers cut off in the
//     middle of a message, such as the answer to a commit that PostgreSQL has made.
//   - Clients: they vanish in the middle of a call, forget to release, sleep past the end
//     of their leases, send calls twice to different replicas. See package load.
//   - Wall clocks: two replicas are built with a time.Now that is an hour off.
//
// A quarter of the faults come in twos, in different places.
//
// # What is checked
//
// Every call is recorded by package history and, with all events, held against the rules
// of package lock; its comment has the list. Besides,
//
//   - streams, pollers and blocking reads, which go through the same lines as the clients,
//     are told of every event, once, in order, and promptly while the service is undisturbed;
//   - nothing that was injected and undone keeps the service from coming back;
//   - a replica that is told to stop ends with exit code 0;
//   - afterwards every replica serves; no connection is left in a transaction, no
//     advisory lock, no waiter, no lease;
//   - no log has a panic, a data race, a lease_id or the password;
//   - there was load before the faults, and some commits did lose their answers, or the
//     run would prove nothing.
//
// # Again
//
// What is to happen is drawn from a seed, which is that of the clients' intentions, too:
//
//	go test ./test/faults -run TestNothingIsLostUnderFaults -v -faults.for=2m -faults.seed=42
//
// breaks the same things in the same order for the same time. What the clients get done
// meanwhile depends on the machine, so a violation need not come again at once; a longer
// run is one of several rounds, with seeds that follow each other. With -faults.race the
// race detector watches the replicas as well. When a run fails it says where it has left
// the violations, as text and as porcupine's picture, and the logs of the replicas.
//
// # Restores
//
// TestARestoreIsNoticed restores an earlier state of the database while two replicas run:
//
//   - an atomic snapshot of the files, after kill -9 of PostgreSQL;
//   - a base backup on the same timeline, after PostgreSQL was stopped;
//   - both again, and another application writes to the server before a replica connects,
//     until the log is further than it was before the restore;
//   - a snapshot after which only a few locks were granted, with another application.
//
// Between the copy and the restore, locks are granted. Afterwards other clients ask for the
// same locks. Each restore must begin exactly one epoch before any lock is granted. No lock
// may be granted while the holder of a lost lease counts on it, and each token must be greater
// than all those before the restore.
//
// One more variant is only measured: nothing but one replica has seen anything newer than the
// copy. The other replica cannot notice the restore, so it grants locks again until the first
// replica looks.
//
// A restore is no nemesis of the run above: it takes events away, and most checks compare
// answers with events. The trial "restored" of TestTheCheckerFindsWhatIsBroken restores a
// database under the random load, with the checks that need no events.
//
// # Noisy neighbours
//
// TestANoisyNeighbourIsBorne renews 50 leases with a TTL of two seconds, every third of it,
// beside one noisy client at a time. The client joins 9,900 queue places within 1.4 s, whose
// waits then end together; sends the largest batches back to back; lists all locks page by page,
// by holder and by state; or holds 2,000 idle event streams. No lease may be lost.
// TestJoinsDoNotCostTheLengthOfTheQueue measures how many calls a second join a queue with 10
// and with 1,000 waiters.
//
// Both print how long renewals and joins take. They limit that only with -faults.noise, since
// the machine of a CI run is often shared:
//
//	make faults-long
//
// runs 20 restores of each variant, and the noise in full size with its limits.
//
// # What is not checked
//
// The machine does not lose power: what was written is in the system's cache, so a disk
// that lies about flushing is not found out. PostgreSQL's own clock is not set. Nothing
// here is fast enough to say how fast Paddock is.
package faults
