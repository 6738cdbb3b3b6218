// Package faults breaks real deployments of Paddock while many clients use them, and checks
// what the clients were told: real processes, real PostgreSQL servers, real signals. It contains
// only tests:
//
//   - TestNothingIsLostUnderFaults injects random faults; most of this comment is about it.
//   - TestFailOversAndRestores promotes standbys and restores backups. A suspect lease outlives a fail-over under quorum.
//   - TestSubscribersSurviveCrashes counts what readers of events miss when PostgreSQL crashes
//     (-faults.crashes=20 for many crashes).
//   - TestRestoreBeginsAnEpoch restores an earlier state of the database under running replicas.
//   - TestFullQueuesAreServedInOrder fills the queues of a replica up to their limits, and
//     TestUnreadStreamsShareMemory opens a thousand streams that are never read.
//   - TestSlowSubscriberLosesOnlyWhatItsGapsSay reads a stream at one byte a second for a while.
//   - TestNoisyNeighbourCostsNoLease renews leases beside one client that uses all it is allowed.
//   - TestEachCircleHasOneVictim lets tasks wait for each other in circles on two replicas that are killed
//     (-faults.circlekills=240 for ten minutes).
//   - TestCutConnectionsCostNoPlace closes all connections of clients every two seconds, while they wait for one lock
//     (-faults.cuts=600 for twenty minutes).
//   - TestSetsAreGrantedWholeOrNotAtAll lets clients acquire sets while replicas are killed.
//   - TestACellThatIsAwayCostsOnlyItsGroups kills or suspends the database of one of three cells (-faults.celloutage=30s).
//   - TestAGroupMovesUnderLoad moves a group between three cells, and kills the commands that move it (-faults.moves=100).
//   - TestPaddockPassesTrials runs two replicas on one database under nine kinds of disturbance, and while epochs begin.
//   - TestMutantsAreFound tests the tests: a mutant is Paddock with one comparison or rule broken by a patch in mutants/.
//     Package verify must find a violation in a trial, or the test of package store that the mutant names must fail.
//
// # The deployment
//
//	go test -C test ./faults -run TestNothingIsLostUnderFaults -v
//
// starts three replicas of `paddock serve` on their own PostgreSQL, and clients that run package
// verify/workload. All connections pass through toxiproxy:
//
//	clients ──▶ proxy ──▶ replica 1 ────────────────▶ proxy ──▶ PostgreSQL
//	        ──▶ proxy ──▶ replica 2 (clock +1 hour) ─▶ proxy ──▶
//	        ──▶ proxy ──▶ replica 3 (clock −1 hour) ─▶ proxy ──▶
//
// Replica 2 also runs four batch workers, and replica 3 runs without LISTEN. The addresses stay
// the same while the processes behind them come and go.
//
// The next fault is injected only when the service is under load again: twenty calls a second must
// be answered. A run that does not get there within half a minute fails.
//
// # Which faults are injected
//
//   - Replicas: killed, terminated, or suspended for up to four seconds (a few TTLs); one or all at
//     once. They are restarted as by a supervisor.
//   - PostgreSQL: killed, stopped without a checkpoint, restarted, suspended; one backend killed, so
//     that the server recovers; all backends terminated; all statements cancelled; commits that wait
//     for an absent standby. Two of three crashes come in a lull of the workload (see package
//     workload), when nothing is flushed.
//   - Other users of the database: they lock a row or a table, idle in a transaction with an old
//     snapshot, or take all connections.
//   - Network: connections reset; slow, or split into pieces of a few bytes; requests, answers or both
//     dropped on connections that stay open; requests or answers cut off in the middle of a
//     message, such as the answer to a commit that PostgreSQL has made.
//   - Clients: they cancel calls, leave leases to expire or to become suspect, sleep past the end of leases, send calls
//     twice to different replicas. An operator freezes locks and changes a rule all the time. See package workload.
//   - Wall clocks: two replicas are built with a time.Now that is an hour off.
//
// A quarter of the faults come in pairs, in different components. At first every kind of fault comes once; then the
// kinds come as often as their weights.
//
// # What is checked
//
// Package verify records every call and compares it with all events; its package comment lists
// the checks. In addition:
//
//   - streams, pollers and blocking reads, which use the same proxies as the clients, receive
//     every event, once, in order, and promptly while the service is undisturbed;
//   - the service recovers from every fault;
//   - a replica that is terminated exits with code 0;
//   - afterwards every replica serves, and the database has no open transaction, advisory
//     lock, waiter or lease of Paddock;
//   - no log contains a panic, a data race, a lease_id or the password;
//   - there was load before the faults, and some commits lost their answers; otherwise the run
//     would prove nothing.
//
// # Short and long form
//
//	go test -C test ./faults -parallel 4
//	make soak
//
// The first is the short form, which CI runs for every change. It injects each kind of fault once, always from the same
// seed; it lets Paddock pass each trial once, and checks that each patch still applies.
//
// The second includes the long form, -faults.long, which CI runs every night with the race detector: several rounds of
// faults from random seeds for ten minutes, 20 restores of each variant, 20 crashes of each kind, 10 fail-overs in a
// row, full queues of 10,000 waiters, noise beside two replicas, ten rounds of each trial, and all mutants, which
// make mutants runs alone. The flags -faults.for, -faults.restores, -faults.crashes, -faults.failovers and
// -faults.rounds set one size alone.
//
// # Reproducing a run
//
// The faults and the plans of the clients are drawn from one seed:
//
//	go test -C test ./faults -run TestNothingIsLostUnderFaults -v -faults.for=2m -faults.seed=42
//
// injects the same faults in the same order for the same time. What the clients get done depends on
// the machine, so a violation need not appear again at once. A longer run has several rounds with
// consecutive seeds. -faults.race builds the replicas with the race detector. A failed run prints
// the directory with the violations, as text and as porcupine's visualization, and the logs.
//
// # Restores
//
// TestRestoreBeginsAnEpoch restores an earlier state of the database while two replicas run:
//
//   - an atomic snapshot of the files, after kill -9 of PostgreSQL;
//   - a base backup on the same timeline, after PostgreSQL was stopped;
//   - both again, and another application writes to the server before a replica connects,
//     until the log is further than it was before the restore;
//   - a snapshot after which only a few locks were granted, with another application.
//
// Between the copy and the restore, locks are granted. Afterwards other clients request the same
// locks. Each restore must begin exactly one epoch before any lock is granted. No lock may be
// granted while the holder of a lost lease counts on it, and each token must be greater than all
// those before the restore.
//
// A restore is not among the random faults: it removes events, and most checks compare answers with
// events. One of the trials restores a database under the random workload, with the checks that need no
// events.
//
// # Noisy neighbours
//
// TestNoisyNeighbourCostsNoLease renews 50 leases beside one noisy client at a time. The client joins 9,900 queue
// places within 1.4 s, whose waits then end together, or sends the largest batches back to back. No lease may be lost.
//
// It logs how long renewals take, and limits that only with -faults.noise, since CI machines are often shared:
//
//	make faults-long
//
// runs 20 restores of each variant, and the noise in full size with its limits.
//
// # What is not found
//
// The machine does not lose power, so a disk that lies about flushing is not found. PostgreSQL's own
// clock is not set. These tests are not a benchmark.
package faults
