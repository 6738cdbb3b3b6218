//go:build race

package database

// Slowness multiplies the times after which a round trip is given up, or a commit is late. The race detector runs in
// tests only, which share a machine with many others: there a database that gives no answer for some seconds is no
// outage.
const Slowness = 6
