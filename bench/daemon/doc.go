// Package daemon runs the servers of others as children of the bench: each in a directory of
// its own, in a process group of its own, with its output in a file there. On Linux they end
// when the bench does, by whatever cause.
package daemon
