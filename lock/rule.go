package lock

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// MaxRules is the maximum number of rules.
const MaxRules = 1000

// A Rule bounds what may be asked of the locks of its scope. If several rules cover a lock, that of the longest scope
// applies, and no other: so each rule says all, and nobody has to add up several.
//
// A request outside of the bounds is refused with ErrInvalid. One from before the rule is granted within the bounds, also
// if its call is repeated, and a lease from before it is renewed within them.
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
	// MaxLeases is how many leases of all locks of the scope one API key may have. Zero: unlimited. It is soft: replicas
	// count by themselves, and in the database every ten seconds, and waiters that are granted their locks are not
	// refused. It does not apply to calls without an API key, nor to leases from before the rule.
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

// checkTimes returns the refusal of a lease with these times, if it is outside of the rule.
func (r *Rule) checkTimes(ttl, grace time.Duration) error {
	switch {
	case r.MaxTTL > 0 && ttl > r.MaxTTL:
		return Invalid("ttl_ms", "is %d; give at most %d: the rule for %s allows no more", ttl.Milliseconds(), r.MaxTTL.Milliseconds(), r.Scope)
	case grace < r.MinGrace:
		return Invalid("grace_ms", "is %d; give at least %d: the rule for %s allows no less", grace.Milliseconds(), r.MinGrace.Milliseconds(), r.Scope)
	}
	return nil
}

// checkSession returns the refusal of a lease of a session with these times, if it is outside of the rule. The acquire has no
// times of its own that could be changed.
func (r *Rule) checkSession(s SessionRef, ttl, grace time.Duration) error {
	switch {
	case r.MaxTTL > 0 && ttl > r.MaxTTL:
		return Invalid("session_id", "is that of session %s, whose TTL is %d ms; the rule for %s allows at most %d ms. Open a session with "+
			"ttl_ms %d or less, or leave session_id out", s, ttl.Milliseconds(), r.Scope, r.MaxTTL.Milliseconds(), r.MaxTTL.Milliseconds())
	case grace < r.MinGrace:
		return Invalid("session_id", "is that of session %s, whose grace is %d ms; the rule for %s allows no less than %d ms. Open a session with "+
			"grace_ms %d or more, or leave session_id out", s, grace.Milliseconds(), r.Scope, r.MinGrace.Milliseconds(), r.MinGrace.Milliseconds())
	}
	return nil
}

// checkPermits gives m the capacity of the rule, or returns the refusal of a request for permits that is outside of it.
func (r *Rule) checkPermits(m *Member) error {
	switch {
	case r.Capacity == 0 || m.Mode != Permit:
		return nil
	case m.Capacity != 0 && m.Capacity != r.Capacity:
		return &Error{Code: ErrCapacityMismatch, Capacity: r.Capacity, Detail: fmt.Sprintf(
			"%s has capacity %d by the rule for %s, not %d. Leave capacity out.", m.Name, r.Capacity, r.Scope, m.Capacity)}
	}
	m.Capacity = r.Capacity
	if m.Permits > r.Capacity {
		return Invalid("permits", "is %d; give 1 to %d, the capacity by the rule for %s", m.Permits, r.Capacity, r.Scope)
	}
	return nil
}

// withCapacity returns the record with the capacity of the rule, and so its waiters for permits.
func (r *Rule) withCapacity(lock Record) Record {
	if r.Capacity == 0 {
		return lock
	}
	if lock.Capacity != 0 {
		lock.Capacity = r.Capacity
	}
	copied := false
	for i, w := range lock.Queue {
		if w.Lease.Mode != Permit || w.Capacity == r.Capacity {
			continue
		}
		if !copied {
			lock.Queue, copied = slices.Clone(lock.Queue), true
		}
		own := *w
		own.Capacity = r.Capacity
		lock.Queue[i] = &own
	}
	return lock
}

// within returns the lease within the rules of the locks that it was asked for: one of a request from before. The leases
// of a set all have the same times.
func (p *Policy) within(l Lease) Lease {
	if p == nil || len(p.Rules) == 0 {
		return l
	}
	for _, name := range l.Requested() {
		r := p.RuleOf(name)
		if r == nil {
			continue
		}
		if l.Session == 0 && r.MaxTTL > 0 {
			l.TTL = min(l.TTL, r.MaxTTL)
		}
		if l.Session == 0 && l.AcquiredAt.IsZero() {
			l.Grace = max(l.Grace, r.MinGrace)
		}
		if most := max(r.MaxHold, l.ExpiresAt.Sub(l.AcquiredAt)); r.MaxHold > 0 && l.AcquiredAt.IsZero() {
			l.MaxHold = lesser(l.MaxHold, r.MaxHold)
		} else if r.MaxHold > 0 { // what was promised stays
			l.MaxHold = lesser(l.MaxHold, most)
		}
	}
	return l
}

// lesser returns the lesser one of two durations, of which zero means unlimited.
func lesser(a, b time.Duration) time.Duration {
	if a == 0 || b < a {
		return b
	}
	return a
}

// CheckRule returns the refusal of a new rule, beyond MaxRules.
func (p *Policy) CheckRule(s Scope) error {
	if _, again := p.Rules[s]; !again && len(p.Rules) >= MaxRules {
		return Invalid("scope", "exceeds the limit of %d rules; remove one first", MaxRules)
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
