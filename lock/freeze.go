package lock

import (
	"cmp"
	"strings"
	"time"
)

const (
	// MaxFreeze is the longest time that a Freeze can be requested for. One without an end lasts until it is ended.
	MaxFreeze = 31 * 24 * time.Hour
	// MaxFreezes is the maximum number of freezes.
	MaxFreezes = 1000
)

// A FreezeRequest asks for a [Freeze] of the locks of its scope. A freeze of the same scope is replaced.
type FreezeRequest struct {
	Scope  Scope
	Reason string        // for people: 1 to MaxReasonLength characters
	For    time.Duration // from now on, up to MaxFreeze; zero: until it is ended
	By     string        // the name of the API key of the caller, which package access sets; no request has it
}

// Resolve returns r, or an ErrInvalid error that names the invalid field.
func (r FreezeRequest) Resolve() (FreezeRequest, error) {
	return r, cmp.Or(
		CheckScope(r.Scope),
		checkText("reason", r.Reason, 1, MaxReasonLength),
		CheckDuration("for_ms", r.For, 0, MaxFreeze),
	)
}

// A ThawRequest asks for the end of a [Freeze].
type ThawRequest struct {
	Scope Scope
}

// A Freeze stops new grants of the locks of its scope, for maintenance: leases can be renewed and released, and waiters
// keep their places until the end of the freeze. In a tree, it stops the grants that would cover one of the locks, too.
type Freeze struct {
	Scope    Scope
	Reason   string
	By       string    // the name of the API key that began it; empty in a service without keys
	FrozenAt time.Time // on the database's clock
	Until    time.Time // when it ends by itself; zero: never
}

// IsOver reports whether the freeze has ended by itself at now.
func (f *Freeze) IsOver(now time.Time) bool { return !f.Until.IsZero() && !now.Before(f.Until) }

// CheckFreeze returns the refusal of a new freeze at now, beyond MaxFreezes.
func (p *Policy) CheckFreeze(s Scope, now time.Time) error {
	others := 0
	for scope, f := range p.Freezes {
		if scope != s && !f.IsOver(now) {
			others++
		}
	}
	if others >= MaxFreezes {
		return Invalid("scope", "exceeds the limit of %d freezes; end one first", MaxFreezes)
	}
	return nil
}

// FreezeOf returns the freeze that stops grants of the lock for the longest time, nil if there is none. In a tree, that may
// be one of a lock above, at which the grant needs an intention.
func (p *Policy) FreezeOf(name string, now time.Time) *Freeze {
	found := p.freezesOf(name, now)
	for _, above := range p.trees().Path(name) {
		if f, ok := p.Freezes[Scope(above)]; ok && !f.IsOver(now) {
			found = append(found, f)
		}
	}
	return longestFreeze(found, name, Exclusive)
}

// freezeIn returns the freeze that stops grants of the lock in the mode for the longest time, nil if there is none.
func (p *Policy) freezeIn(m Mode, name string, now time.Time) *Freeze {
	return longestFreeze(p.freezesOf(name, now), name, m)
}

// freezesOf returns the freezes in force at now that stop grants of the lock: those whose scopes cover it, and in a tree
// those of a lock below, which leases of the lock would cover.
func (p *Policy) freezesOf(name string, now time.Time) (found []Freeze) {
	if p == nil || len(p.Freezes) == 0 {
		return nil
	}
	eachScope(name, func(s Scope) bool {
		if f, ok := p.Freezes[s]; ok && !f.IsOver(now) {
			found = append(found, f)
		}
		return true
	})
	if p.Trees.Contains(name) {
		for s, f := range p.Freezes {
			if strings.HasPrefix(string(s), name+":") && !f.IsOver(now) {
				found = append(found, f)
			}
		}
	}
	return found
}

// Stopped returns the locks whose new leases a freeze of the scope stops: those of a scope, and others. In a tree, those
// above are among them, which would cover a lock of the scope; and if the scope is a lock, those below, which need its
// intention.
func (t Trees) Stopped(s Scope) (Scope, []string) {
	path := t.path(string(s))
	if path != nil && !s.IsPrefix() {
		return s + ":", path
	}
	return s, path
}

// longestFreeze returns the one of the freezes that stops grants of the lock in the mode for the longest time, nil if none
// does. The intentions at a lock do not cover all that is below it.
func longestFreeze(freezes []Freeze, name string, m Mode) (longest *Freeze) {
	for i := range freezes {
		f := &freezes[i]
		if m.IsIntention() && !f.Scope.Covers(name) {
			continue
		}
		if longest == nil || f.Until.IsZero() || !longest.Until.IsZero() && longest.Until.Before(f.Until) {
			longest = f
		}
	}
	return longest
}

// A FreezeStatus is a freeze, and what it still waits for.
type FreezeStatus struct {
	Freeze
	// Leases is how many leases of locks of the scope are left, those in grace included, and those whose end is not
	// recorded yet; in a tree also those of locks above, and of locks below one. None is added while the freeze lasts. So
	// at zero the work that the locks guard has stopped.
	Leases int
	AsOf   time.Time // on the database's clock
}
