//go:build race || slow

package database

// Slowness multiplies the times after which a round trip is given up, or a commit is late. Only tests are built with
// the race detector or with the tag slow: on a machine that many of them share, a database that gives no answer for
// some seconds is no outage.
const Slowness = 6
