package sim

import (
	"slices"
	"strings"
	"time"
)

// A Kind is a kind of violation.
type Kind string

// The kinds of violations.
const (
	TwoHolders    Kind = "two holders"    // at one instant two workers find, by their clocks, that they have the lock
	LostUpdate    Kind = "lost update"    // a worker overwrote a value that it had not read
	HolderRefused Kind = "holder refused" // the fence refused the token of the current holder
	TornRead      Kind = "torn read"      // a value changed under a reader's lease
	InformedLate  Kind = "informed late"  // a lease ended before its holder was informed
	Overtaken     Kind = "overtaken"      // a later waiter was granted the lock first
	Unserved      Kind = "unserved"       // a worker waited too long although nothing was wrong
	Unsound       Kind = "unsound events" // they break verify.Rules
	TornSet       Kind = "torn set"       // the leases of a set did not begin or end together
	Leftover      Kind = "leftover"       // a lease or a place in the queue without an owner
	AgainstOrder  Kind = "against order"  // what an operator had declared did not hold
	Repeated      Kind = "repeated"       // work was done twice in a period, or counts as done although it was not
)

// A Violation is one failure in a run.
type Violation struct {
	Kind Kind
	At   time.Duration
	Text string

	workers []string      // the workers concerned
	from    time.Duration // when the first of them had the lock
}

// An Outcome is the result of a run.
type Outcome struct {
	Plan  Plan
	Trace *Trace
	Held  int // how often a worker had the lock
	// HeldSets is how often it had other locks together with it.
	HeldSets int
	// DiedHolding is how many workers died while they had the lock.
	DiedHolding int
	Found       []Violation
}

// First returns the first violation of that kind.
func (o Outcome) First(k Kind) (Violation, bool) {
	i := slices.IndexFunc(o.Found, func(v Violation) bool { return v.Kind == k })
	if i < 0 {
		return Violation{}, false
	}
	return o.Found[i], true
}

// Has reports whether there is a violation of that kind.
func (o Outcome) Has(k Kind) bool {
	_, has := o.First(k)
	return has
}

// Failures returns the violations that Paddock must never cause. Two holders at once are no failure where the
// database's clock steps: a lease is over when that clock says so, and the fence protects the resource.
func (o Outcome) Failures() []Violation {
	return slices.DeleteFunc(slices.Clone(o.Found), func(v Violation) bool {
		return v.Kind == TwoHolders && !o.Plan.databaseClockIsSteady()
	})
}

// Excerpt returns what the workers concerned did and what happened to servers, from the first grant concerned until
// the violation.
func (o Outcome) Excerpt(v Violation) string {
	return format(slices.DeleteFunc(o.Trace.sorted(), func(e entry) bool {
		concerned := slices.Contains(v.workers, e.actor) || strings.HasPrefix(e.actor, "server")
		return e.detail || !concerned || e.at < v.from || e.at > v.At
	}))
}
