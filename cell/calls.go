package cell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

// one returns the group of all the names, or the refusal of a call about locks of several cells. The format is of the
// field of one of the names.
func (r *Router) one(names []string, format string) (group string, err error) {
	if len(names) == 0 {
		return "", nil // its cell refuses it
	}
	group = placement.Group(names[0])
	if len(names) == 1 {
		return group, nil
	}
	first, err := r.of(group)
	if err != nil {
		return group, err
	}
	for i, name := range names[1:] {
		if m, err := r.of(placement.Group(name)); err != nil {
			return group, err
		} else if m != first {
			return group, lock.Invalid(fmt.Sprintf(format, i+1), "%s is in cell %s, and %s is in cell %s: locks that are acquired together "+
				"must be in one cell. Give them names with the same beginning up to the first colon", name, m.name, names[0], first.name)
		}
	}
	return group, nil
}

// Acquire acquires the locks in the cell of their group, see paddock.Service. A call that waits has a lease_id, so that
// its place is found where the group has moved.
func (r *Router) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	group, err := r.one(a.Names(), "locks/%d/name")
	if err != nil {
		return lock.Grant{}, err
	}
	if a.Wait > 0 && a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID, a.GeneratedID = lock.LeaseID(uuid.New()), true
	}
	end := time.Now().Add(a.Wait)
	g, err := at(ctx, r, group, func(m *member, s paddock.Service) (lock.Grant, error) {
		if a.Wait > 0 {
			a.Wait = max(time.Until(end), time.Millisecond).Round(time.Millisecond)
		}
		g, err := s.Acquire(ctx, a)
		if !isUnknownSession(err) {
			return g, err
		}
		if err := r.introduce(ctx, m, a.SessionID); err != nil {
			return g, err
		}
		return s.Acquire(ctx, a)
	})
	return r.untilSessionEnds(ctx, g, err)
}

// Renew extends the leases, see paddock.Service.
func (r *Router) Renew(ctx context.Context, c lock.Renew) (lock.Grant, error) {
	group, err := r.one(c.Locks, "names/%d")
	if err != nil {
		return lock.Grant{}, err
	}
	g, err := at(ctx, r, group, func(_ *member, s paddock.Service) (lock.Grant, error) { return s.Renew(ctx, c) })
	return r.untilSessionEnds(ctx, g, err)
}

// Release ends the leases, see paddock.Service.
func (r *Router) Release(ctx context.Context, c lock.Release) error {
	group, err := r.one(c.Locks, "names/%d")
	if err != nil {
		return err
	}
	_, err = at(ctx, r, group, func(_ *member, s paddock.Service) (none, error) { return none{}, s.Release(ctx, c) })
	return err
}

// none is the answer of a call without one.
type none = struct{}

// Batch runs the items of each cell as a batch there, see paddock.Service. An item whose group has moved, or whose
// session is new to its cell, is sent again as a call.
func (r *Router) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	if err := paddock.CheckBatch(len(items)); err != nil {
		return paddock.FailAll(len(items), err)
	}
	results := make([]paddock.Result, len(items))
	parts := map[*member][]int{}
	for i, item := range items {
		if results[i].Err = paddock.ValidateBatchItem(item); results[i].Err != nil {
			continue
		}
		group := ""
		if names := namesOf(item); len(names) > 0 {
			group = placement.Group(names[0])
		}
		m, err := r.of(group)
		if err != nil {
			results[i].Err = err
			continue
		}
		parts[m] = append(parts[m], i)
	}
	var running sync.WaitGroup
	for m, part := range parts {
		running.Go(func() { r.runPart(ctx, m, items, part, results) })
	}
	running.Wait()
	return results
}

// runPart runs those of the items at the cell, and sets their results.
func (r *Router) runPart(ctx context.Context, m *member, items []lock.Command, part []int, results []paddock.Result) {
	s, err := m.service()
	if err != nil {
		for _, i := range part {
			results[i].Err = err
		}
		return
	}
	mine := make([]lock.Command, len(part))
	for n, i := range part {
		mine[n] = items[i]
	}
	var moved []int
	for n, result := range s.Batch(ctx, mine) {
		if errors.As(result.Err, new(*placement.ElsewhereError)) || isUnknownSession(result.Err) {
			moved = append(moved, part[n])
			continue
		}
		results[part[n]].Grant, results[part[n]].Err = r.untilSessionEnds(ctx, result.Grant, m.explain(result.Err))
	}
	for _, i := range moved {
		results[i] = paddock.BatchSequentially(ctx, r, items[i:i+1])[0]
	}
}

// namesOf returns the locks of an item of a batch as the caller has named them.
func namesOf(item lock.Command) []string {
	switch c := item.(type) {
	case lock.Renew:
		return c.Locks
	case lock.Release:
		return c.Locks
	}
	return item.Names()
}

// Revoke ends leases, see paddock.Service.
func (r *Router) Revoke(ctx context.Context, c lock.Revoke) (lock.Lock, error) {
	return at(ctx, r, placement.Group(c.Name), func(_ *member, s paddock.Service) (lock.Lock, error) { return s.Revoke(ctx, c) })
}

// DeclareTree declares a tree, see paddock.Service.
func (r *Router) DeclareTree(ctx context.Context, root string) (lock.Tree, error) {
	return at(ctx, r, placement.Group(root), func(_ *member, s paddock.Service) (lock.Tree, error) { return s.DeclareTree(ctx, root) })
}

// RemoveTree removes a tree, see paddock.Service.
func (r *Router) RemoveTree(ctx context.Context, root string) error {
	_, err := at(ctx, r, placement.Group(root), func(_ *member, s paddock.Service) (none, error) { return none{}, s.RemoveTree(ctx, root) })
	return err
}

// groupOf returns the group of a scope.
func groupOf(s lock.Scope) string { return placement.Group(string(s)) }

// Freeze stops new grants, see paddock.Service.
func (r *Router) Freeze(ctx context.Context, q lock.FreezeRequest) (lock.FreezeStatus, error) {
	return at(ctx, r, groupOf(q.Scope), func(_ *member, s paddock.Service) (lock.FreezeStatus, error) { return s.Freeze(ctx, q) })
}

// Thaw ends a freeze, see paddock.Service.
func (r *Router) Thaw(ctx context.Context, q lock.ThawRequest) error {
	_, err := at(ctx, r, groupOf(q.Scope), func(_ *member, s paddock.Service) (none, error) { return none{}, s.Thaw(ctx, q) })
	return err
}

// Frozen returns a freeze, see paddock.Service.
func (r *Router) Frozen(ctx context.Context, scope lock.Scope) (lock.FreezeStatus, error) {
	return at(ctx, r, groupOf(scope), func(_ *member, s paddock.Service) (lock.FreezeStatus, error) { return s.Frozen(ctx, scope) })
}

// SetRule sets a rule, see paddock.Service.
func (r *Router) SetRule(ctx context.Context, u lock.Rule) (lock.Rule, error) {
	return at(ctx, r, groupOf(u.Scope), func(_ *member, s paddock.Service) (lock.Rule, error) { return s.SetRule(ctx, u) })
}

// RemoveRule removes a rule, see paddock.Service.
func (r *Router) RemoveRule(ctx context.Context, scope lock.Scope) error {
	_, err := at(ctx, r, groupOf(scope), func(_ *member, s paddock.Service) (none, error) { return none{}, s.RemoveRule(ctx, scope) })
	return err
}

// Lock returns a lock, see paddock.Service.
func (r *Router) Lock(ctx context.Context, name string) (lock.Lock, error) {
	return at(ctx, r, placement.Group(name), func(_ *member, s paddock.Service) (lock.Lock, error) { return s.Lock(ctx, name) })
}

// Watch returns a lock once it is not what was seen, see paddock.Service.
func (r *Router) Watch(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
	end := time.Now().Add(w.Wait)
	return at(ctx, r, placement.Group(w.Name), func(_ *member, s paddock.Service) (lock.Lock, error) {
		if w.Wait > 0 {
			w.Wait = max(time.Until(end), 0).Round(time.Millisecond)
		}
		return s.Watch(ctx, w)
	})
}

// Queue returns the waiters of a lock, see paddock.Service.
func (r *Router) Queue(ctx context.Context, name string) (lock.QueueInfo, error) {
	return at(ctx, r, placement.Group(name), func(_ *member, s paddock.Service) (lock.QueueInfo, error) { return s.Queue(ctx, name) })
}

// VerifyToken returns the status of a token, see paddock.Service.
func (r *Router) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	return at(ctx, r, placement.Group(v.Name), func(_ *member, s paddock.Service) (lock.Verification, error) { return s.VerifyToken(ctx, v) })
}

// ReportStale records a refused token, see paddock.Service.
func (r *Router) ReportStale(ctx context.Context, c lock.ReportStale) (bool, error) {
	return at(ctx, r, placement.Group(c.Name), func(_ *member, s paddock.Service) (bool, error) { return s.ReportStale(ctx, c) })
}

// WriteFenced writes the resource in the cell of the key's group, see paddock.Service. The lock must be there.
func (r *Router) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	group := placement.Group(w.Key)
	if err := r.checkFenced(w, group, placement.Group(w.Lock)); err != nil {
		return lock.FencedValue{}, err
	}
	return at(ctx, r, group, func(_ *member, s paddock.Service) (lock.FencedValue, error) { return s.WriteFenced(ctx, w) })
}

// checkFenced returns an error unless the groups of the key and of the lock are in one cell.
func (r *Router) checkFenced(w lock.FencedWrite, ofKey, ofLock string) error {
	if ofKey == ofLock {
		return nil
	}
	if _, err := w.Resolve(); err != nil {
		return err
	}
	m, err := r.of(ofKey)
	if err != nil {
		return err
	}
	n, err := r.of(ofLock)
	if err == nil && m != n {
		err = lock.Invalid("lock", "%s is in cell %s, and the key %s is in cell %s: a lock guards values of its own cell only. "+
			"Give them names with the same beginning up to the first colon", w.Lock, n.name, w.Key, m.name)
	}
	return err
}

// ReadFenced returns the resource, see paddock.Service.
func (r *Router) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	return at(ctx, r, placement.Group(key), func(_ *member, s paddock.Service) (lock.FencedValue, error) { return s.ReadFenced(ctx, key) })
}
