package policy

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

var (
	sqlSetRule    = change("set_rule")
	sqlRemoveRule = change("remove_rule")
)

// SetRule sets the rule.
func (c *Catalog) SetRule(ctx context.Context, r lock.Rule) (lock.Rule, error) {
	err := c.apply(ctx, plan{
		of:    string(r.Scope),
		check: func(s *Snapshot) (bool, error) { return false, s.CheckRule(r.Scope) },
		sql:   sqlSetRule,
		args: []any{
			string(r.Scope), r.MaxTTL.Milliseconds(), r.MaxHold.Milliseconds(), r.MinGrace.Milliseconds(), r.Capacity, r.MaxLeases, r.SetBy,
		},
		into: []any{&r.SetAt},
	})
	r.SetAt = r.SetAt.UTC()
	return r, err
}

// RemoveRule removes the rule of the scope, or finds that there is none.
func (c *Catalog) RemoveRule(ctx context.Context, s lock.Scope) error {
	return c.apply(ctx, plan{
		of: string(s),
		check: func(now *Snapshot) (bool, error) {
			_, found := now.Rules[s]
			return !found, nil
		},
		sql: sqlRemoveRule, args: []any{string(s)}, into: []any{new(bool)},
	})
}

// RulesInOrder returns the rules in the order of their scopes.
func (s *Snapshot) RulesInOrder() []lock.Rule {
	return slices.SortedFunc(maps.Values(s.Rules), func(a, b lock.Rule) int { return strings.Compare(string(a.Scope), string(b.Scope)) })
}
