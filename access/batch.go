package access

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
)

// Batch lets through the items that the key allows. Each is checked, and counts, as
// the call of its own does, so a batch gets nobody further than single calls would.
func (g *guard) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	if err := lock.CheckBatch(len(items)); err != nil {
		return lock.FailAll(len(items), err)
	}
	results := make([]lock.Result, len(items))
	allowed, places := make([]lock.Command, 0, len(items)), make([]int, 0, len(items))
	for i, item := range items {
		if _, _, err := g.admit(ctx, requirementOf(item)); err != nil {
			results[i].Err = err
			continue
		}
		allowed, places = append(allowed, item), append(places, i)
	}
	for i, r := range g.inner.Batch(ctx, allowed) {
		results[places[i]] = r
	}
	return results
}

// requirementOf returns what an item asks of its key. What may be none is refused by whom
// it is passed on to.
func requirementOf(item lock.Command) requirement {
	switch c := item.(type) {
	case lock.Acquire:
		return requirement{role: Lock, scopes: singleName("name", c.Name)}
	case lock.Renew:
		return requirement{role: Lock, scopes: singleName("name", c.Name), keepsLease: true}
	case lock.Release:
		return requirement{role: Lock, scopes: singleName("name", c.Name), keepsLease: true}
	}
	return requirement{role: Lock}
}
