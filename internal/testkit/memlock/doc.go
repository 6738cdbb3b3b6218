// Package memlock is a lock.Service in memory: the rules of package lock over a
// map. It is for tests of what stands on a lock.Service and need not know of a
// database, and for simulations. All its time is that of package time, so that it
// runs in a bubble of testing/synctest.
//
// Several replicas share a [Memory], as those of the real service share a
// database. It passes the same conformance suite, see package locktest.
package memlock
