// Package memlock is a paddock.Service in memory: the rules of package lock over a map. It is for tests of code that
// uses a paddock.Service without a database, and for simulations. It uses only the time of package time, so it runs in
// a bubble of testing/synctest.
//
// Several replicas share a [Memory], as those of the real service share a database. It passes the conformance suite
// of package locktest.
package memlock
