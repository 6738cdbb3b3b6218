package store

import (
	"context"
	"slices"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// Batch does each item as the call of its own would, see lock.Service. They all join
// their groups before any is waited for, so most of them share a transaction. Of the
// items in one group either all find room or none.
func (s *Store) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	if err := lock.CheckBatch(len(items)); err != nil {
		return lock.FailAll(len(items), err)
	}
	results := make([]lock.Result, len(items))
	calls, places := make([]*call, 0, len(items)), make([]int, 0, len(items))
	for i, item := range items {
		cmd, err := s.resolve(item)
		if err != nil {
			results[i].Err = err
			continue
		}
		calls, places = append(calls, batch.NewCall[lock.Command, outcome](cmd)), append(places, i)
	}
	if ctx.Err() != nil || s.ctx.Err() != nil {
		refuse(calls, unavailable(context.Cause(ctx)))
	} else {
		s.offer(calls)
	}
	// The last is answered last, mostly, so one wait is enough. And should the context end,
	// nothing is done on a lock after an item on it was given up.
	for i, c := range slices.Backward(calls) {
		results[places[i]] = resultOf(answered(c.Wait(ctx)))
	}
	return results
}

// resolve returns the item as it is decided on, or what is wrong with it.
func (s *Store) resolve(item lock.Command) (lock.Command, error) {
	if err := lock.ValidateBatchItem(item); err != nil {
		return nil, err
	}
	switch c := item.(type) {
	case lock.Acquire:
		a, err := c.Resolve(s.bounds)
		return s.own(a), err
	case lock.Renew:
		return c.Resolve(s.bounds)
	case lock.Release:
		return c.Resolve()
	}
	return item, nil
}

// offer has the calls join their groups, in order. Those for which a group has no
// room are refused.
func (s *Store) offer(calls []*call) {
	groups := make(map[*dispatcher][]*call, len(s.groups))
	for _, c := range calls {
		g := s.group(c.Req.Names()[0])
		groups[g] = append(groups[g], c)
	}
	for g, calls := range groups {
		if !g.offer(calls...) {
			refuse(calls, unavailable(batch.ErrFull))
		}
	}
}

// resultOf returns what came of an item, of which a release grants nothing.
func resultOf(o outcome, err error) lock.Result {
	if err != nil || o.Lease.ID == (lock.LeaseID{}) {
		return lock.Result{Err: err}
	}
	return lock.Result{Grant: grantOf(o)}
}
