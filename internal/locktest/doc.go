// Package locktest is the conformance suite of [lock.Service]: what every
// implementation promises, whatever stands behind it. The same tests run on the
// store, on a client before a server before a store, and on several of these at
// random.
//
// The suite needs the service to itself for nothing: each test uses names that
// nobody else has, so the service may be shared, in use, and full of other locks.
// It needs the widest bounds, those of the zero [lock.Bounds].
//
// # Time
//
// No test rests on anything being fast. A lease that must be alive gets a TTL that
// outlives any test run, one that must end gets the shortest there is and may be
// over when its answer arrives. A test waits for the end by asking for the lock,
// until the deadline of the test run at most. Events may be shown late, since
// another transaction can hold them back; tests ask again until they are there.
//
// # Not tested
//
// What happens when processes, connections or databases die; how fast anything
// is; that an expiry is written down before anybody asks.
package locktest
