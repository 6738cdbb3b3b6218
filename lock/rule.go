package lock

import (
	"cmp"
	"time"
)

// MaxRules is the maximum number of rules.
const MaxRules = 1000

// A Rule bounds what may be asked of the locks of its scope. If several rules cover a lock, that of the longest scope
// applies, and no other: so each rule says all, and nobody has to add up several.
//
// A request outside of the bounds is refused with ErrInvalid. One from before the rule is granted within the bounds, and
// a lease from before it is renewed within them.
type Rule struct {
	Scope  Scope
	MaxTTL time.Duration // zero: that of the Bounds. A TTL that is left out is at most this
	// MaxHold bounds all renewals of a lease together, from its grant on. Zero: unlimited. The lease has the lesser one of
	// this and the MaxHold of the request.
	MaxHold  time.Duration
	MinGrace time.Duration // zero: none. A grace that is left out is this
	// Capacity is the number of permits of each lock; requests leave it out. Zero: requests have it. If it grows, waiters
	// are granted permits at once; if it shrinks, no lease ends, and no permit is granted until enough are free.
	Capacity int
	// MaxLeases is how many leases of all locks of the scope one API key may have, with its waiters that are granted
	// later. Zero: unlimited. It is counted every few seconds, or minutes if there are very many locks, so a key may
	// exceed it for as long. It does not apply to calls without an API key.
	MaxLeases int

	SetBy string    // the name of the API key of the caller, which package access sets; no request has it
	SetAt time.Time // on the database's clock; set by the service
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r Rule) Resolve() (Rule, error) {
	r.SetAt = time.Time{}
	err := CheckScope(r.Scope)
	for _, b := range []struct {
		field           string
		value           time.Duration
		least, greatest time.Duration
	}{
		{"max_ttl_ms", r.MaxTTL, MinTTL, MaxTTL}, {"max_hold_ms", r.MaxHold, MinTTL, MaxHold}, {"min_grace_ms", r.MinGrace, 0, MaxGrace},
	} {
		if err == nil && b.value != 0 {
			err = CheckDuration(b.field, b.value, b.least, b.greatest)
		}
	}
	return r, cmp.Or(err, checkCountOf("capacity", r.Capacity, MaxHolders), checkCountOf("max_leases", r.MaxLeases, MaxRuleLeases), r.checkSome())
}

// MaxRuleLeases is the greatest MaxLeases of a Rule.
const MaxRuleLeases = 1_000_000

// checkCountOf returns an ErrInvalid error unless n is 0 to most.
func checkCountOf(field string, n, most int) error {
	if n < 0 || n > most {
		return Invalid(field, "is %d; give 1 to %d, or leave it out", n, most)
	}
	return nil
}

// checkSome returns an ErrInvalid error if the rule has no bound.
func (r Rule) checkSome() error {
	if (r.MaxTTL+r.MaxHold+r.MinGrace) == 0 && r.Capacity+r.MaxLeases == 0 {
		return Invalid("scope", "has no bound in this rule; give one or more of max_ttl_ms, max_hold_ms, min_grace_ms, capacity and max_leases")
	}
	return nil
}

// RuleOf returns the rule that applies to the lock, nil for none.
func (p *Policy) RuleOf(name string) (found *Rule) {
	if p == nil || len(p.Rules) == 0 {
		return nil
	}
	eachScope(name, func(s Scope) bool {
		if r, ok := p.Rules[s]; ok {
			found = &r
		}
		return found == nil
	})
	return found
}
