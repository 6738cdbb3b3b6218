package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A Verb says what a call asked for.
type Verb string

// The verbs, each with the types of what is asked and answered.
const (
	Acquire     Verb = "acquire"      // lock.Acquire, lock.Grant
	Renew       Verb = "renew"        // lock.Renew, lock.Grant
	Release     Verb = "release"      // lock.Release, nothing
	Revoke      Verb = "revoke"       // lock.Revoke, lock.Lock
	ReadLock    Verb = "look"         // string (the name), lock.Lock
	Watch       Verb = "watch"        // lock.Watch, lock.Lock: a blocking read
	VerifyToken Verb = "verify"       // lock.Verify, lock.Verdict
	WriteFenced Verb = "write fenced" // lock.FencedWrite, lock.Fenced
	ReadFenced  Verb = "read fenced"  // string (the key), lock.Fenced
)

// A Call is one call of a client, with its answer.
type Call struct {
	ID       int    // its place in the History, from 0
	Client   int    // who made it; the calls of one client do not overlap
	Via      string // the replica, or the address, that it was sent to
	Verb     Verb
	Name     string // of the lock; of the key, for ReadFenced
	Request  any    // as the Verb says
	Response any    // as the Verb says; nil unless it was done
	Err      error  // nil if it was done
	// Cancelled reports whether the client gave the call up before the service answered.
	Cancelled bool

	// When it was sent and when its answer was there, since the recording began, on
	// the monotonic clock of the process that records.
	Sent, Answered time.Duration
}

// An Outcome says what is known of a call.
type Outcome int

// The outcomes of a call.
const (
	Done    Outcome = iota // it took effect between Sent and Answered
	Refused                // it was refused for good, and what it asked for did not happen
	NotDone                // the service could not do it now: nothing happened
	Unknown                // it may have happened, or may yet
)

// Outcome returns what is known of the call.
func (c Call) Outcome() Outcome {
	switch {
	case c.Err == nil:
		return Done
	case errors.Is(c.Err, lock.ErrUnknownOutcome), errors.Is(c.Err, lock.ErrInternal):
		return Unknown
	case errors.Is(c.Err, lock.ErrUnavailable), errors.Is(c.Err, lock.ErrTooManyWaiters), errors.Is(c.Err, lock.ErrRateLimited):
		return NotDone
	}
	if errors.As(c.Err, new(*lock.Error)) {
		return Refused
	}
	return Unknown
}

// A Fault is something that was done to the service, or its clients, meanwhile.
type Fault struct {
	Description string
	At          time.Duration // since the recording began
	Ended       time.Duration // when it was undone; At or less if that was not noted
	// Epoch is whether another clock, or another database, may answer from about then
	// on: leases may then end at other instants than was told.
	Epoch bool
}

// A History is all that was recorded.
type History struct {
	Calls  []Call // in the order in which they were sent
	Faults []Fault
	// Start is when the recording began, on the clock of the process that records.
	Start time.Time
	// Events are what the service tells of the locks, oldest first, from the first
	// event of each; nil if they were not collected.
	Events []lock.Event
	// Subscriptions are what the readers of events were told.
	Subscriptions []Subscription
}

// catchUp is for how long a page of events is waited for while it is known that
// there must be more.
const catchUp = lock.MaxWait / 10

// Collect returns all events of the locks whose names begin with prefix, oldest
// first. A transaction that is still open hides what was committed after it began,
// so Collect reads until each lock's events lead to the revision that the lock had
// when it began, or until ctx ends. Have the clients be done before.
func Collect(ctx context.Context, s lock.Service, prefix string) ([]lock.Event, error) {
	want, err := revisions(ctx, s, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the locks: %w", err)
	}
	events := []lock.Event{}
	for q := (lock.EventQuery{Prefix: prefix, Limit: lock.MaxLimit}); ; {
		page, err := s.Events(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("read events: %w", err)
		}
		if page.Gap {
			return nil, fmt.Errorf("events after %s are not kept any longer; collect sooner, or have the service keep events for longer", q.Cursor)
		}
		for _, e := range page.Items {
			if e.Revision >= want[e.Name] {
				delete(want, e.Name)
			}
		}
		events, q.Cursor, q.Wait = append(events, page.Items...), page.Next, 0
		switch {
		case len(page.Items) > 0:
		case len(want) == 0:
			return events, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("the newest events of %d locks do not come to light, as behind a transaction that is still open: %w",
				len(want), context.Cause(ctx))
		default:
			q.Wait = catchUp
		}
	}
}

// revisions returns the revision that each lock has, of those that have changed.
func revisions(ctx context.Context, s lock.Service, prefix string) (map[string]int64, error) {
	want := map[string]int64{}
	for q := (lock.LockQuery{Prefix: prefix, Limit: lock.MaxLimit}); ; {
		page, err := s.Locks(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, l := range page.Items {
			if l.Revision > 0 {
				want[l.Name] = l.Revision
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return want, nil
		}
	}
}
