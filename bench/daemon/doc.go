// Package daemon runs servers as children of the bench. Each has its own directory, which also gets its
// output, and its own process group. On Linux they end when the bench ends, for whatever reason.
package daemon
