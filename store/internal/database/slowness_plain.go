//go:build !race && !slow

package database

// Slowness multiplies the times after which a round trip is given up, or a commit is late.
const Slowness = 1
