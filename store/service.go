package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/observe"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// Acquire grants the lock, or waits for it, see paddock.Service.
func (s *Store) Acquire(ctx context.Context, a lock.Acquire) (g lock.Grant, err error) {
	began, mode := time.Now(), modeOf(a)
	out, err := s.acquire(ctx, &a)
	seen := observe.Call{Op: observe.Acquire, Mode: mode, Err: err}
	if err == nil {
		grantTo(&g, out)
		seen.Replayed = g.Replayed
	}
	if a.Wait > 0 {
		seen.Waited = time.Since(began)
	}
	s.db.Observer.Call(seen)
	return g, err
}

// modeOf returns the mode of the first lock that the acquire names.
func modeOf(a lock.Acquire) (m lock.Mode) {
	if len(a.Locks) > 0 {
		m = a.Locks[0].Mode
	}
	return cmp.Or(m, lock.Exclusive)
}

// acquire is on the stack of every call that waits, so it has no copies of large values.
func (s *Store) acquire(ctx context.Context, a *lock.Acquire) (*row.Outcome, error) {
	if err := s.prepare(ctx, a); err != nil {
		return nil, err
	}
	if a.Wait == 0 {
		return s.engine.Do(ctx, *a)
	}
	return s.waiters.Acquire(ctx, a)
}

// prepare completes a for a decision by this replica: with a LeaseID, and with whether its session is full.
func (s *Store) prepare(ctx context.Context, a *lock.Acquire) (err error) {
	if *a, err = a.Resolve(s.bounds); err != nil {
		return err
	}
	a.Attachment, a.Replica, a.LimitReached, a.SessionFull = 0, s.self, false, false
	if a.LeaseID == (lock.LeaseID{}) {
		a.GeneratedID = true
		a.LeaseID = lock.LeaseID(uuid.New())
	}
	if a.KeyFull, err = s.policy.FullFor(ctx, lock.CallerFrom(ctx).Name, a.Locks); err != nil {
		return err
	}
	if ref := a.SessionID.Ref(); ref != 0 {
		a.SessionFull, err = s.sessions.IsFull(ctx, ref, len(a.Locks), s.bounds.MaxSessionLeases)
	}
	return err
}

// Renew moves the end of a lease, see paddock.Service.
func (s *Store) Renew(ctx context.Context, r lock.Renew) (g lock.Grant, err error) {
	defer func() { s.db.Observer.Call(observe.Call{Op: observe.Renew, Err: err}) }()
	if r, err = r.Resolve(s.bounds); err != nil {
		return lock.Grant{}, err
	}
	return granted(s.engine.Do(ctx, r))
}

// granted returns the answer about a lease.
func granted(o *row.Outcome, err error) (g lock.Grant, _ error) {
	if err == nil {
		grantTo(&g, o)
	}
	return g, err
}

// grantTo sets g to the grant of a decision that is one.
func grantTo(g *lock.Grant, o *row.Outcome) {
	g.Lease, g.Leases, g.Until, g.Replayed = o.Leases[0], o.Leases, o.Until(o.Leases[0].ExpiresAt), o.Replayed
}

// Release ends a lease, see paddock.Service.
func (s *Store) Release(ctx context.Context, r lock.Release) (err error) {
	defer func() { s.db.Observer.Call(observe.Call{Op: observe.Release, Err: err}) }()
	if r, err = r.Resolve(); err != nil {
		return err
	}
	_, err = s.engine.Do(ctx, r)
	return err
}

// Revoke ends leases, see paddock.Service.
func (s *Store) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	r, err := r.Resolve()
	if err != nil {
		return lock.Lock{}, err
	}
	var cmd lock.Command = r
	out, err := s.engine.Do(ctx, cmd)
	for err == nil && out.FollowUp != nil {
		cmd = out.FollowUp
		if out, err = s.engine.Do(ctx, cmd); errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrInternal) {
			err = database.UnknownOutcome(err) // leases may have been revoked before
		}
	}
	if err != nil {
		return lock.Lock{}, err
	}
	l := out.Locks[slices.Index(cmd.Names(), r.Name)].Lock(out.Now)
	l.AddPolicy(&s.policy.Newest().Policy)
	return l, nil
}

// Batch runs each item like a separate call, see paddock.Service. They all join their batches before any is waited for,
// so most of them share a commit. Of the items of one batch worker either all find room or none.
func (s *Store) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	results := s.batch(ctx, items)
	for i, r := range results {
		switch item := items[i].(type) {
		case lock.Acquire:
			s.db.Observer.Call(observe.Call{Op: observe.Acquire, Mode: modeOf(item), Replayed: r.Grant.Replayed, Err: r.Err})
		case lock.Renew:
			s.db.Observer.Call(observe.Call{Op: observe.Renew, Err: r.Err})
		case lock.Release:
			s.db.Observer.Call(observe.Call{Op: observe.Release, Err: r.Err})
		}
	}
	return results
}

func (s *Store) batch(ctx context.Context, items []lock.Command) []paddock.Result {
	if err := paddock.CheckBatch(len(items)); err != nil {
		return paddock.FailAll(len(items), err)
	}
	results := make([]paddock.Result, len(items))
	cmds, places := make([]lock.Command, 0, len(items)), make([]int, 0, len(items))
	for i, item := range items {
		cmd, err := s.resolve(ctx, item)
		if err != nil {
			results[i].Err = err
			continue
		}
		cmds, places = append(cmds, cmd), append(places, i)
	}
	outcomes, errs := s.engine.DoAll(ctx, cmds)
	for i, o := range outcomes {
		switch result := &results[places[i]]; {
		case errs[i] != nil:
			result.Err = errs[i]
		case o.Leases != nil: // a release grants nothing
			result.Grant, _ = granted(o, nil)
		}
	}
	return results
}

// resolve returns the item as it is decided, or what is wrong with it.
func (s *Store) resolve(ctx context.Context, item lock.Command) (lock.Command, error) {
	if err := paddock.ValidateBatchItem(item); err != nil {
		return nil, err
	}
	switch c := item.(type) {
	case lock.Acquire:
		err := s.prepare(ctx, &c)
		return c, err
	case lock.Renew:
		return c.Resolve(s.bounds)
	case lock.Release:
		return c.Resolve()
	}
	return item, nil
}
