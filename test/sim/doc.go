// Package sim plays locks, clients and the network between them in one process whose
// time is simulated, so that a run of minutes takes milliseconds and a seed says it all.
//
// # What is real, what is played
//
// Real are the rules of package lock, as internal/testkit/memlock serves them, and the guards of
// package guard. Played are the workers who use them, the network, the clocks, and the
// register that the lock guards. A [Plan] says what goes wrong in a run:
//
//   - Messages are late by up to two TTLs, and so overtake each other; requests are lost,
//     or their answers; requests arrive twice, the second time much later; calls that
//     wait are cut; connections are refused, or swallow everything, for a while.
//   - Worker processes are paused. A paused process sends nothing, reads nothing and sees
//     none of its timers until it goes on.
//   - Replicas die with the calls that wait there, and others start in their stead.
//   - Servers' clocks are off, drift, and step forward or back, the database's too.
//
// # What must hold
//
// In a run with Paddock, a [Violation] of any [Kind] is a fault, see [Outcome.Wrong]:
//
//   - The events are sound by history.Rules: exclusion, tokens, places in the queue.
//   - The register never loses an update, and never refuses who has the lock.
//   - No two workers find at one instant that they have the lock, unless the database's
//     clock steps; pauses do not matter, since a guard compares clocks when it is asked.
//   - Whose lease expires was told before that it is lost, unless that clock steps.
//   - Those who wait and are never cut off are served in the order in which they came.
//   - When there is no trouble any more, all are served in bounded time, every goroutine
//     ends, and nothing is left of the locks but their events.
//
// # Variants
//
// A [Variant] is a way to lock. [Variants] has Paddock and four usual recipes, under the
// same load, network, pauses and clocks. What comes of them is on docs/simulation.md.
//
// # What a seed guarantees
//
// Plan and load follow from the seed alone. So does the fate of each message, by its
// sender, kind and number: one source of random numbers serves each of these, and all
// delays are of odd nanoseconds, so that hardly any two things happen at one instant.
// The guards' own jitter comes from the runtime and from no seed; it is taken out, by
// having each call leave at the latest instant that the jitter allows. Of several
// goroutines that a pause held up, each goes on a nanosecond after the one before. With
// that, the same seed gives the same [Trace], to the nanosecond.
//
// Not guaranteed, though tests look for it: goroutines that do become runnable at the same
// instant run in any order. A machine that was suspended since it started measures that
// with an error of nanoseconds, which guards take into account. And another version of
// Paddock, or of this package, makes other traces of the same seeds.
//
// A pause is played at the borders of a process: what a guard does inside of it while it
// is paused, such as to notice that its deadline is over, happens sooner than it could in
// reality, and nobody sees it until the process goes on.
package sim
