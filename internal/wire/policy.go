package wire

import (
	"github.com/paddock-lock/paddock/api"
	"github.com/paddock-lock/paddock/lock"
)

func closureOf(c lock.Closure) api.Closure {
	return api.Closure{Until: c.Until.UTC(), Holder: c.Holder, DoneAt: c.At.UTC()}
}

// toClosure returns the closure.
func toClosure(c api.Closure) lock.Closure {
	return lock.Closure{Until: c.Until, Holder: c.Holder, At: c.DoneAt}
}

func freezeOf(f lock.Freeze) api.Freeze {
	return api.Freeze{
		Scope: string(f.Scope), Reason: f.Reason, FrozenBy: UnlessZero(f.By), FrozenAt: f.FrozenAt.UTC(), Until: instantOf(f.Until),
	}
}

// toFreeze returns the freeze.
func toFreeze(f api.Freeze) lock.Freeze {
	return lock.Freeze{
		Scope: lock.Scope(f.Scope), Reason: f.Reason, By: ValueOf(f.FrozenBy), FrozenAt: f.FrozenAt, Until: ValueOf(f.Until),
	}
}

// FreezeStatusOf returns the model of a freeze and what is left of its leases.
func FreezeStatusOf(s lock.FreezeStatus) api.FreezeStatus {
	f := freezeOf(s.Freeze)
	return api.FreezeStatus{
		Scope: f.Scope, Reason: f.Reason, FrozenBy: f.FrozenBy, FrozenAt: f.FrozenAt, Until: f.Until, Leases: s.Leases, AsOf: s.AsOf.UTC(),
	}
}

// ToFreezeStatus returns the freeze and what is left of its leases.
func ToFreezeStatus(s api.FreezeStatus) lock.FreezeStatus {
	f := api.Freeze{Scope: s.Scope, Reason: s.Reason, FrozenBy: s.FrozenBy, FrozenAt: s.FrozenAt, Until: s.Until}
	return lock.FreezeStatus{Freeze: toFreeze(f), Leases: s.Leases, AsOf: s.AsOf}
}

// FreezeListOf returns the model of a list of freezes.
func FreezeListOf(all []lock.Freeze) api.FreezeList {
	return api.FreezeList{Freezes: MapSlice(all, freezeOf)}
}

// ToFreezeList returns the freezes.
func ToFreezeList(l api.FreezeList) []lock.Freeze { return MapSlice(l.Freezes, toFreeze) }

// FreezeRequestOf returns the body that asks for a freeze.
func FreezeRequestOf(r lock.FreezeRequest) api.FreezeRequest {
	return api.FreezeRequest{Reason: r.Reason, ForMs: UnlessZero(Milliseconds(r.For))}
}

// RuleOf returns the model of a rule.
func RuleOf(r lock.Rule) api.Rule {
	m := RuleRequestOf(r)
	return api.Rule{
		Scope: string(r.Scope), MaxTTLMs: m.MaxTTLMs, MaxHoldMs: m.MaxHoldMs, MinGraceMs: m.MinGraceMs, Capacity: m.Capacity,
		MaxLeases: m.MaxLeases, SetBy: UnlessZero(r.SetBy), SetAt: r.SetAt.UTC(),
	}
}

// ToRule returns the rule.
func ToRule(r api.Rule) lock.Rule {
	return lock.Rule{
		Scope: lock.Scope(r.Scope), MaxTTL: nonNegative(ValueOf(r.MaxTTLMs)), MaxHold: nonNegative(ValueOf(r.MaxHoldMs)),
		MinGrace: nonNegative(ValueOf(r.MinGraceMs)), Capacity: ValueOf(r.Capacity), MaxLeases: ValueOf(r.MaxLeases),
		SetBy: ValueOf(r.SetBy), SetAt: r.SetAt,
	}
}

// RuleListOf returns the model of a list of rules.
func RuleListOf(all []lock.Rule) api.RuleList { return api.RuleList{Rules: MapSlice(all, RuleOf)} }

// ToRuleList returns the rules.
func ToRuleList(l api.RuleList) []lock.Rule { return MapSlice(l.Rules, ToRule) }

// RuleRequestOf returns the body that asks for a rule.
func RuleRequestOf(r lock.Rule) api.RuleRequest {
	return api.RuleRequest{
		MaxTTLMs: UnlessZero(Milliseconds(r.MaxTTL)), MaxHoldMs: UnlessZero(Milliseconds(r.MaxHold)),
		MinGraceMs: UnlessZero(Milliseconds(r.MinGrace)), Capacity: UnlessZero(r.Capacity), MaxLeases: UnlessZero(r.MaxLeases),
	}
}
