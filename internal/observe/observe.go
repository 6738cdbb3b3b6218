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
	// Call is called by the store after each call of paddock.Service that an Op names, and for each item of a batch.
	Call(Call)
	// Decided is called by the store when a decision is committed, before its caller is answered.
	Decided(*lock.Decision)
	// HandedOver is called by the store when a waiting call of this replica learns that it was granted its lock, with
	// the time since the decision that granted it began.
	HandedOver(time.Duration)
	// Round is called by the store after each round of a batch.
	Round(Round)
	// Succeeded is called by the store when a background task has just done what it is for.
	Succeeded(task string)
}

// An Op names a method of paddock.Service.
type Op int

// The calls that an Observer sees.
const (
	Acquire Op = iota
	Renew
	Release
	OpenSession
	RenewSession
	CloseSession
	RevokeSession
	VerifyToken
	ReportStale
	WriteFenced
)

// A Call is an answered call of paddock.Service.
type Call struct {
	Op       Op
	Mode     lock.Mode     // of an acquire; if that is of several locks, of the first in the request
	Waited   time.Duration // how long an acquire with a Wait took; zero for one without
	Replayed bool          // it found the lease or session of an earlier call
	Stale    bool          // its token is stale: it was refused, found or reported to be so
	Err      error
}

// A Round is one attempt to decide a batch, or a part of it.
type Round struct {
	Calls  int
	Took   time.Duration
	Looked bool // some of the locks were read; otherwise all were in the cache
	Locked bool // their rows were locked
	Missed int  // calls to be decided again, since another replica has changed their lock, or the clock or the epoch has moved on
}

// Nothing returns an Observer that ignores everything.
func Nothing() Observer { return nothing{} }

type nothing struct{}

func (nothing) Request(string, string, int, time.Duration) {}
func (nothing) Call(Call)                                  {}
func (nothing) Decided(*lock.Decision)                     {}
func (nothing) HandedOver(time.Duration)                   {}
func (nothing) Round(Round)                                {}
func (nothing) Succeeded(string)                           {}
