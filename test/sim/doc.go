// Package sim plays locks, clients and the network between them in one process with simulated time. A run of minutes
// takes milliseconds, and a seed determines it.
//
// # What is real, what is simulated
//
// The rules of package lock, as internal/testkit/memlock serves them, and the guards of package guard are real. The
// workers that use them, the network, the clocks and the register that the lock guards are simulated. A [Plan] holds
// the faults of a run:
//
//   - Messages are delayed by up to two TTLs, and so overtake each other. Requests or answers are lost. Requests arrive
//     twice, the second time much later. Calls that wait are cut. Connections are refused, or drop everything, for a
//     while.
//   - Worker processes are paused. A paused process sends nothing, reads nothing and sees no timer until it continues.
//   - A worker process dies for good.
//   - Replicas die with the calls that wait there, and others start in their place.
//   - Servers' clocks are off, drift and step, the database's clock included.
//   - An operator freezes locks and changes the capacity of a semaphore while they are used.
//
// # What must hold
//
// In a run with Paddock, a [Violation] of any [Kind] is a failure, see [Outcome.Failures]:
//
//   - The events follow verify.Rules: exclusion, tokens, places in the queue.
//   - The register never loses an update, and never refuses the holder of the lock.
//   - No two workers find at one instant that they have the lock, unless the database's clock steps. Pauses do not
//     matter, since a guard compares clocks when it is asked.
//   - A holder whose lease expires is informed before, unless that clock steps.
//   - Waiters whose calls meet no fault are granted the lock in the order in which they joined.
//   - A lock in a tree excludes the one above it, which guards the same register.
//   - Locks that are acquired together are granted, and released, in one decision.
//   - Leases of a session end with it, and not before.
//   - Work that is done once in a period closes its lock if it was done, and only then; those who wait for it are told.
//   - Nothing is granted in a freeze, and no permit beyond the capacity of its time.
//   - A lease that stays ends only when its worker releases it or the operator revokes it.
//   - After the last fault every worker that lives is served in bounded time, also after a worker that died while it
//     had the lock. Every goroutine ends, and of the locks only their events are left.
//
// # Variants
//
// A [Variant] is a way to lock. [Variants] returns Paddock and six recipes, under the same load, network, pauses and
// clocks. docs/simulation.md shows what each lets happen.
//
// # What a seed guarantees
//
// Plan and load follow from the seed alone. So does the delivery of each message, by its sender, kind and number: each
// of these has a random number generator of its own, and all delays are odd numbers of nanoseconds, so that hardly any
// two events coincide. The guards' jitter comes from the runtime and from no seed; it is removed by delaying each call
// to the latest instant that the jitter allows. Goroutines that a pause held up continue a nanosecond apart. With
// that, the same seed gives the same [Trace], to the nanosecond.
//
// Not guaranteed, though tests look for it: goroutines that become runnable at the same instant run in any order. A
// machine that was suspended since it started measures that with an error of nanoseconds, which guards take into
// account. Another version of Paddock, or of this package, makes other traces of the same seeds.
//
// A pause takes effect at the borders of a process. What a guard does inside it during a pause, such as to notice that
// its deadline has passed, happens sooner than it could in reality, and has no effect until the process continues.
package sim
