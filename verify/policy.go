package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A declared is a freeze or a rule, with the time in which it certainly was in force.
type declared struct {
	call   *Call
	from   time.Time     // on the database's clock: what was decided later was decided under it
	until  time.Time     // likewise, when a freeze ends by itself; zero: never
	ends   time.Duration // when the next call was sent that may have replaced or ended it
	rule   lock.Rule     // unless it is a freeze
	frozen bool
}

// scopeOf returns the scope that the call declares or ends something for; false if it is another call.
func scopeOf(c *Call) (s lock.Scope, freeze, ok bool) {
	switch r := c.Request.(type) {
	case lock.FreezeRequest:
		return r.Scope, true, true
	case lock.ThawRequest:
		return r.Scope, true, true
	case lock.Rule:
		return r.Scope, false, true
	case lock.Scope:
		return r, false, true
	}
	return "", false, false
}

// A policyKey is a scope, of a freeze or of a rule.
type policyKey struct {
	scope  lock.Scope
	freeze bool
}

// declarations returns what operators declared, by scope. The calls that may have replaced or ended it are those that
// were answered or lost after it was sent; a call whose answer was lost may take effect at any time later.
func (h History) declarations() map[policyKey][]declared {
	changes := map[policyKey][]*Call{}
	for i := range h.Calls {
		c := &h.Calls[i]
		if s, freeze, ok := scopeOf(c); ok && (c.Outcome() == Done || c.Outcome() == Unknown) {
			changes[policyKey{s, freeze}] = append(changes[policyKey{s, freeze}], c)
		}
	}
	all := map[policyKey][]declared{}
	for key, calls := range changes {
		for _, c := range calls {
			d := declared{call: c, ends: endOfTime}
			switch got := c.Response.(type) {
			case lock.FreezeStatus:
				d.from, d.until, d.frozen = got.FrozenAt, got.Until, true
			case lock.Rule:
				d.from, d.rule = got.SetAt, got
			default:
				continue
			}
			for _, o := range calls {
				if o != c && (o.Outcome() == Unknown || o.Answered > c.Sent) {
					d.ends = min(d.ends, o.Sent)
				}
			}
			all[key] = append(all[key], d)
		}
	}
	return all
}

// endOfTime is later than all calls.
const endOfTime = time.Duration(1<<63 - 1)

// covers reports whether the grant was certainly decided while d was in force: after d on the database's clock, and
// answered before a call was sent that may have ended d.
func (d declared) covers(t *lockHistory, l *lease) bool {
	answer := l.firstAnswer()
	return l.granted != nil && answer != nil && d.precedes(t, l.granted) && answer.Answered < d.ends &&
		(d.until.IsZero() || l.granted.At.Before(d.until))
}

// precedes reports whether d was certainly declared before the event. An epoch keeps it, and the instant of its end.
func (d declared) precedes(t *lockHistory, e *lock.Event) bool {
	first, last := t.epochs.ofCall(d.call)
	k := t.epochs.of(e)
	return last < k || first == k && last == k && e.At.After(d.from)
}

// coversCall reports whether the call was certainly decided while d was in force: sent after d was answered, and answered
// before a call was sent that may have ended d.
func (d declared) coversCall(c *Call) bool {
	return c.Sent > d.call.Answered && c.Answered < d.ends
}

// policy checks each grant against the freezes and rules of its lock.
func (x *examination) policy(c *Check) {
	all := x.declarations()
	if len(all) == 0 {
		return
	}
	for _, t := range x.locks {
		out := t.permitsOut()
		for _, l := range t.leases {
			for key, freezes := range all {
				if key.freeze && t.isStoppedBy(key.scope) {
					t.checkFreezes(l, freezes, c)
				}
			}
			if d, ok := t.ruleOf(all, func(d declared) bool { return d.covers(t, l) }); ok {
				t.checkRule(l, d, out[l], c)
			}
			for _, renewal := range l.renewed {
				if d, ok := t.ruleOf(all, func(d declared) bool { return d.coversCall(renewal) }); ok {
					t.checkRenewal(l, renewal, d, c)
				}
			}
		}
	}
}

// isStoppedBy reports whether a freeze of the scope stops grants of the lock: it covers the lock, or in a tree a lock above,
// whose intention each lease of this one needs, or one below, which a lease of this one would cover.
func (t *lockHistory) isStoppedBy(s lock.Scope) bool {
	return s.Covers(t.name) || t.inTree && (strings.HasPrefix(string(s), t.name+":") || slices.ContainsFunc(t.above, s.Covers))
}

// checkFreezes checks that the lease was not granted in one of the freezes.
func (t *lockHistory) checkFreezes(l *lease, freezes []declared, c *Check) {
	for _, d := range freezes {
		if c.Examined++; d.covers(t, l) {
			c.violated(t, fmt.Sprintf("%q was granted the lock at %s, but the freeze of %s was answered before, and is from %s.",
				l.holder, clock(l.granted.At), d.call.Name, clock(d.from)), []*Call{d.call, l.firstAnswer()}, l.granted)
		}
	}
}

// ruleOf returns the rule of the longest scope, if it certainly covers the decision in question. It is not known if a rule of
// a longer scope may have been in force.
func (t *lockHistory) ruleOf(all map[policyKey][]declared, covers func(declared) bool) (found declared, ok bool) {
	for key, rules := range all {
		if key.freeze || !key.scope.Covers(t.name) || len(key.scope) < len(found.rule.Scope) {
			continue
		}
		i := slices.IndexFunc(rules, covers)
		found, ok = declared{rule: lock.Rule{Scope: key.scope}}, i >= 0
		if ok {
			found = rules[i]
		}
	}
	return found, ok
}

// checkRule checks the lease and its answers against the rule. out is how many permits there are with those of the lease.
func (t *lockHistory) checkRule(l *lease, d declared, out int, c *Check) {
	c.Examined++
	r := d.rule
	if l.mode == lock.Permit && r.Capacity > 0 && out > r.Capacity {
		c.violated(t, fmt.Sprintf("%q was granted a permit at %s, the %d. of %d by the rule for %s.", l.holder, clock(l.granted.At),
			out, r.Capacity, r.Scope), []*Call{d.call, l.firstAnswer()}, l.granted)
	}
	for _, answer := range slices.Concat(l.acquired, l.renewed) {
		g := grant(answer)
		if answer.Answered >= d.ends || g.Session != 0 {
			continue
		}
		what := ""
		switch {
		case r.MaxTTL > 0 && g.TTL > r.MaxTTL:
			what = fmt.Sprintf("with a TTL of %v of at most %v", g.TTL, r.MaxTTL)
		case g.Grace < r.MinGrace:
			what = fmt.Sprintf("with a grace of %v of at least %v", g.Grace, r.MinGrace)
		case r.MaxHold > 0 && g.ExpiresAt.Sub(g.AcquiredAt) > r.MaxHold:
			what = fmt.Sprintf("for %v of at most %v", g.ExpiresAt.Sub(g.AcquiredAt), r.MaxHold)
		default:
			continue
		}
		c.violated(t, fmt.Sprintf("%q has the lock %s by the rule for %s.", l.holder, what, r.Scope), []*Call{d.call, answer}, l.granted)
		return
	}
}

// checkRenewal checks the TTL of a renewal, which a newer rule than that of the grant may bound. The other bounds keep what
// the grant has promised.
func (t *lockHistory) checkRenewal(l *lease, renewal *Call, d declared, c *Check) {
	c.Examined++
	if g := grant(renewal); g.Session == 0 && d.rule.MaxTTL > 0 && g.TTL > d.rule.MaxTTL {
		c.violated(t, fmt.Sprintf("%q renewed its lease with a TTL of %v of at most %v by the rule for %s.", l.holder, g.TTL, d.rule.MaxTTL,
			d.rule.Scope), []*Call{d.call, renewal}, l.granted)
	}
}

// permitsOut returns how many permits were granted and had not ended, by the lease whose grant is the newest of them.
func (t *lockHistory) permitsOut() map[*lease]int {
	granted, ended := map[*lock.Event]*lease{}, map[*lock.Event]*lease{}
	for _, l := range t.leases {
		granted[l.granted], ended[l.ended] = l, l
	}
	out, n := map[*lease]int{}, 0
	for i := range t.events {
		e := &t.events[i]
		if l := ended[e]; l != nil && l.granted != nil {
			n -= l.slots.Count()
		}
		if l := granted[e]; l != nil {
			n += l.slots.Count()
			out[l] = n
		}
	}
	return out
}
