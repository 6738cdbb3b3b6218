// Package observe is how the parts of a replica say what has happened, so that it can be counted. A part calls the
// Observer where the thing happens; package metrics is the Observer that counts, and every other one is in a test.
//
// There are two more ways to see a replica at work, because an Observer cannot replace them:
//
//   - The log is for what an operator reads one by one. Its interface is slog.Logger.
//   - A span contains other spans, so it begins before them and travels in the context (package tracing). The
//     statements below it come from the driver, the only one to see them all, through pgx.QueryTracer.
//
// What is true at the moment of a scrape, rather than what has happened, is in store.Stats.
package observe

import (
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// An Observer sees what a replica does. Its methods must not block, and may be called from several goroutines at once.
type Observer interface {
	// Request is called by the server after each request, with its method, the pattern of its route (empty: none), the
	// status and the time that the answer took.
	Request(method, route string, status int, took time.Duration)
	// Decided is called by the store when a decision is committed, before its caller is answered.
	Decided(*lock.Decision)
	// HandedOver is called by the store when a waiting call of this replica learns that it was granted its lock, with
	// the time since the decision that granted it began.
	HandedOver(time.Duration)
	// Round is called by the store after each round of a batch.
	Round(Round)
}

// A Round is one attempt to decide a batch, or a part of it.
type Round struct {
	Calls  int
	Took   time.Duration
	Looked bool // some of the locks were read; otherwise all were in the cache
	Locked bool // their rows were locked
	Missed int  // calls to be decided again, since another replica has changed their lock, or the clock or the epoch has moved on
}

// Nothing is an Observer that ignores everything. An Observer that embeds it ignores what it does not override.
type Nothing struct{}

var _ Observer = Nothing{}

// Request ignores the request.
func (Nothing) Request(string, string, int, time.Duration) {}

// Decided ignores the decision.
func (Nothing) Decided(*lock.Decision) {}

// HandedOver ignores the grant.
func (Nothing) HandedOver(time.Duration) {}

// Round ignores the round.
func (Nothing) Round(Round) {}
