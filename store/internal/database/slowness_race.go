//go:build race

package database

// slowness is how many times as long a round trip may take. The race detector runs in tests only, which share a machine
// with many others: there a database that gives no answer for some seconds is no outage.
const slowness = 12
