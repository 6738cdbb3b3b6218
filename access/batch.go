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
		if _, _, err := g.admit(ctx, needOf(item)); err != nil {
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

// needOf returns what an item asks of its key. What may be none is refused by whom
// it is passed on to.
func needOf(item lock.Command) need {
	switch c := item.(type) {
	case lock.Acquire:
		return need{role: Lock, names: one("name", c.Name)}
	case lock.Renew:
		return need{role: Lock, names: one("name", c.Name), keeps: true}
	case lock.Release:
		return need{role: Lock, names: one("name", c.Name), keeps: true}
	}
	return need{role: Lock}
}
