// Package fleet tests that clients in every language keep their leases and their places while replicas die. It runs two
// replicas, and kills or freezes one every few seconds; programs with the SDKs, which know both addresses, hold many
// leases and wait in queues meanwhile. Then it reads the history of all locks. It contains only tests.
//
//	make fleet        # twice ten minutes, 200 leases and 200 waiters in each language
//	make fleet-long   # 35 minutes: 200 periods, with machines 0.3 to 5 s apart, and 100 freezes
//
// TestAJobIsDoneOncePerPeriod starts the same job on three machines in each period, and kills one in the middle.
//
// TestNothingIsGrantedInAFreeze freezes a prefix under 64 clients, while one of two replicas is stopped. The stopped one
// wakes before the leases have drained, or after.
//
// A worker is a program with one of the SDKs: worker_test.go, worker.py (threads, or asyncio) and worker.mjs, for which
// the TypeScript SDK must be built, as make test-sdk does. It holds a lease of each of the locks L:held:0, L:held:1 and so
// on, where L is its name, and waits for L:queue with as many calls. It prints a line for each thing that happens: "held"
// when it has all leases, "turn I" when waiter I was granted the lock, which it then releases, and "lost NAME: WHY". When
// its standard input is closed, it releases its leases and ends.
package fleet
