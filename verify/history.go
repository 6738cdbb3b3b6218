package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A Verb names the method that a call used.
type Verb string

// The verbs, each with the types of what is asked and answered.
const (
	Acquire     Verb = "acquire"      // lock.Acquire, lock.Grant
	Renew       Verb = "renew"        // lock.Renew, lock.Grant
	Release     Verb = "release"      // lock.Release, nothing
	Revoke      Verb = "revoke"       // lock.Revoke, lock.Lock
	ReadLock    Verb = "read"         // string (the lock's name), lock.Lock
	Watch       Verb = "watch"        // paddock.Watch, lock.Lock: a blocking read
	VerifyToken Verb = "verify"       // lock.Verify, lock.Verification
	WriteFenced Verb = "write fenced" // lock.FencedWrite, lock.FencedValue
	ReadFenced  Verb = "read fenced"  // string (the key), lock.FencedValue

	OpenSession  Verb = "open session"  // lock.OpenSession, lock.SessionGrant
	RenewSession Verb = "renew session" // lock.RenewSession, lock.SessionGrant
	CloseSession Verb = "close session" // lock.CloseSession, nothing

	DeclareTree Verb = "declare tree" // string (the root), lock.Tree

	Freeze     Verb = "freeze"      // lock.FreezeRequest, lock.FreezeStatus
	Thaw       Verb = "thaw"        // lock.ThawRequest, nothing
	SetRule    Verb = "set rule"    // lock.Rule, lock.Rule
	RemoveRule Verb = "remove rule" // lock.Scope, nothing
)

// session returns the session that the call is about, zero if it is about a lock or a fenced value.
func (c *Call) session() lock.SessionRef {
	if s, ok := c.Request.(lock.SessionChange); ok {
		return s.Session()
	}
	return 0
}

// A Call is one call of a client and its answer.
type Call struct {
	ID       int    // index in History.Calls
	Client   int    // number of the client; the calls of one client do not overlap
	Via      string // replica or address that received the call
	Verb     Verb
	Name     string // of the lock, or of those of a set; for ReadFenced, of the key; of the session
	Request  any    // type as listed at Verb
	Response any    // type as listed at Verb; nil unless the call succeeded
	Err      error  // nil if the call succeeded
	// Cancelled reports whether the client cancelled the call before the service answered.
	Cancelled bool
	// ContextEnded reports whether the context of the caller had ended, by a cancellation or a deadline.
	ContextEnded bool

	// Sent and Answered are times since the recording began, on the monotonic clock of the
	// recording process.
	Sent, Answered time.Duration

	// whole is the call for a set, of which this is the part about one lock; nil for a call on one lock.
	whole *Call
}

// An Outcome says what is known about the effect of a call.
type Outcome int

// Outcomes of a call.
const (
	Done    Outcome = iota // took effect between Sent and Answered
	Refused                // rejected for good; no effect
	NotDone                // unavailable now; no effect
	Unknown                // may have taken effect, or may do so later
)

// Outcome returns what is known about the effect of the call.
func (c Call) Outcome() Outcome {
	switch {
	case c.Err == nil:
		return Done
	case errors.Is(c.Err, lock.ErrUnknownOutcome), errors.Is(c.Err, lock.ErrInternal):
		return Unknown
	case errors.Is(c.Err, lock.ErrUnavailable), errors.Is(c.Err, lock.ErrTooManyWaiters),
		errors.Is(c.Err, lock.ErrRateLimited):
		return NotDone
	}
	if errors.As(c.Err, new(*lock.Error)) {
		return Refused
	}
	return Unknown
}

// A Fault is something that a test did to the service or to its clients.
type Fault struct {
	Description string
	At          time.Duration // since the recording began
	Ended       time.Duration // when it was undone; At or less if that was not recorded
}

// A History is everything that a Recorder recorded.
type History struct {
	Calls  []Call // ordered by Sent
	Faults []Fault
	// Start is when the recording began, on the clock of the recording process.
	Start time.Time
	// Events are the service's events of the locks, oldest first, from the first event of each
	// lock; nil if they were not collected.
	Events []lock.Event
	// Subscriptions are what the subscribers received.
	Subscriptions []Subscription

	inCells bool // reports whether these are those of one group in a service of several cells
}

// catchUp is how long one request waits for more events when more are known to exist.
const catchUp = lock.MaxWait / 10

// Collect returns all events of the locks whose names begin with prefix, oldest first. An open
// transaction hides events that were committed after it began, so Collect reads until the events of
// each lock reach the revision that the lock had when Collect began, and no longer if there are ever
// more, or until ctx ends. Call it after all clients have stopped.
func Collect(ctx context.Context, s paddock.Service, prefix string) ([]lock.Event, error) {
	want, began, err := revisions(ctx, s, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the locks: %w", err)
	}
	trees, err := s.Trees(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the trees: %w", err)
	}
	in := make(lock.Trees, len(trees))
	for _, t := range trees {
		in[t.Root] = struct{}{}
	}
	maps.DeleteFunc(want, func(name string, _ int64) bool { return in.Contains(name) }) // revisions there have no event each
	events := []lock.Event{}
	for q := (paddock.EventQuery{Prefix: prefix, Limit: paddock.MaxLimit}); ; {
		page, err := s.Events(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if page.Gap {
			return nil, fmt.Errorf("events after %s are already pruned; collect sooner, or raise --event-retention",
				q.Cursor)
		}
		for _, e := range page.Items {
			if e.Revision >= want[e.Name] {
				delete(want, e.Name)
			}
		}
		events, q.Cursor, q.Wait = append(events, page.Items...), page.Next, 0
		n := len(page.Items)
		switch {
		case len(want) == 0 && (n == 0 || page.Items[n-1].At.After(began)):
			return events, nil
		case n > 0:
		case ctx.Err() != nil:
			return nil, fmt.Errorf(
				"the newest events of %d locks did not become visible; an open transaction may hide them: %w",
				len(want), context.Cause(ctx))
		default:
			q.Wait = catchUp
		}
	}
}

// revisions returns the revision of each lock that has ever changed, and when the last was read, on the service's
// clock.
func revisions(ctx context.Context, s paddock.Service, prefix string) (want map[string]int64, at time.Time, err error) {
	want = map[string]int64{}
	for q := (paddock.LockQuery{Prefix: prefix, Limit: paddock.MaxLimit}); ; {
		page, err := s.Locks(ctx, q)
		if err != nil {
			return nil, at, err
		}
		for _, l := range page.Items {
			if at = l.AsOf; l.Revision > 0 {
				want[l.Name] = l.Revision
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return want, at, nil
		}
	}
}
