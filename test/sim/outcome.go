package sim

import (
	"slices"
	"strings"
	"time"
)

// A Kind is a way in which a run goes wrong.
type Kind string

// What workers may suffer from whoever locks for them.
const (
	TwoHolders    Kind = "two holders"           // at one instant both find, looking at their clocks, that they have the lock
	LostUpdate    Kind = "lost update"           // somebody overwrote what he had not read
	HolderRefused Kind = "refused rightful"      // who had the lock was refused for the token
	TornRead      Kind = "torn read"             // what a reader read changed under the lease
	InformedLate  Kind = "told late"             // a lease ended before its holder was told so
	Overtaken     Kind = "overtaken"             // somebody came later, and was served sooner
	Unserved      Kind = "unserved"              // all was well, and yet somebody had to wait for too long
	Unsound       Kind = "unsound events"        // they break history.Rules
	Leftover      Kind = "something left behind" // a lease, or a place in the queue, that is nobody's
)

// A Violation is an instance of what went wrong.
type Violation struct {
	Kind Kind
	At   time.Duration
	Text string

	who  []string      // the workers concerned
	from time.Duration // when the first of them began to have the lock
}

// An Outcome is what came of a run.
type Outcome struct {
	Plan  Plan
	Trace *Trace
	Held  int // how often a worker had the lock
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

// Has is whether there is a violation of that kind.
func (o Outcome) Has(k Kind) bool {
	_, has := o.First(k)
	return has
}

// Failures returns what Paddock must never let happen. Two who have the lock at once are
// none of that where the database's clock is put forward: a lease is over when that
// clock says so. The fence is there for it.
func (o Outcome) Failures() []Violation {
	return slices.DeleteFunc(slices.Clone(o.Found), func(v Violation) bool {
		return v.Kind == TwoHolders && !o.Plan.databaseClockIsSteady()
	})
}

// Excerpt returns what the workers concerned did, and what the servers suffered, from when
// the first of them had the lock until it went wrong.
func (o Outcome) Excerpt(v Violation) string {
	return format(slices.DeleteFunc(o.Trace.sorted(), func(e entry) bool {
		concerned := slices.Contains(v.who, e.who) || strings.HasPrefix(e.who, "server")
		return e.detail || !concerned || e.at < v.from || e.at > v.At
	}))
}
