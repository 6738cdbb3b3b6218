// Package locktest is the conformance suite of [lock.Service]: what every
// implementation promises, whatever stands behind it. The same tests run on the
// store, on a client before a server before a store, and on several of these at
// random.
//
// The suite needs the service to itself for nothing: each test uses names that
// nobody else has, so the service may be shared, in use, and full of other locks.
// It needs the widest bounds, those of the zero [lock.Bounds], and room for some
// hundred calls that wait.
//
// # Time
//
// No test rests on anything being fast. A lease that must be alive gets a TTL that
// outlives any test run, one that must end gets the shortest there is and may be
// over when its answer arrives. A test waits for the end by asking for the lock,
// until the deadline of the test run at most. Events may be shown late, since
// another transaction can hold them back; tests ask again until they are there.
//
// A wait that must succeed lasts [lock.LongestWait] and is repeated with the same
// lease_id, as its caller would. A test of a place that is kept for a while begins
// anew with another lock if that while is over before it has come to its end.
// Where a lost wake-up must show, the longest wait is not repeated.
//
// # Histories
//
// The events of a lock prove by themselves that its rules were kept, if they were:
// no conflicting leases at once, nobody overtaken, nobody forgotten. Package history
// reads such a proof; whatever a test does to a lock, in whatever crowd, ends with
// one. It asks for more than a Service must promise on bad days: a waiter whose
// replica has fallen silent is passed over, which [history.Rules] must be told to allow.
//
// # Not tested
//
// What happens when processes, connections or databases die; how fast anything
// is; how many may wait; that an expiry is written down before anybody asks or
// waits.
package locktest
