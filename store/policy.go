package store

import (
	"context"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

// Freeze freezes a scope, see paddock.Service.
func (s *Store) Freeze(ctx context.Context, r lock.FreezeRequest) (lock.FreezeStatus, error) {
	r, err := r.Resolve()
	if err != nil {
		return lock.FreezeStatus{}, err
	}
	f, err := changePolicy(ctx, s, r, s.policy.Freeze)
	if err != nil {
		return lock.FreezeStatus{}, err
	}
	if _, err := s.engine.Do(ctx, lock.NoteFreeze{Freeze: f}); err != nil {
		return lock.FreezeStatus{}, database.UnknownOutcome(err)
	}
	now, err := s.readPolicy(ctx)
	if err != nil {
		return lock.FreezeStatus{}, database.UnknownOutcome(err)
	}
	return s.freezeStatus(ctx, f, now)
}

// Thaw ends a freeze, see paddock.Service.
func (s *Store) Thaw(ctx context.Context, r lock.ThawRequest) error {
	if err := lock.CheckScope(r.Scope); err != nil {
		return err
	}
	type thawed struct {
		lock.Freeze
		found bool
	}
	t, err := changePolicy(ctx, s, r.Scope, func(ctx context.Context, scope lock.Scope) (t thawed, err error) {
		t.Freeze, t.found, err = s.policy.Thaw(ctx, scope)
		return t, err
	})
	if err != nil || !t.found {
		return err
	}
	s.serveWaiters(r.Scope)
	if _, err = s.engine.Do(ctx, lock.NoteFreeze{Freeze: t.Freeze, Thawed: true}); err != nil {
		return database.UnknownOutcome(err)
	}
	return nil
}

// Frozen returns a freeze, see paddock.Service.
func (s *Store) Frozen(ctx context.Context, scope lock.Scope) (lock.FreezeStatus, error) {
	if err := lock.CheckScope(scope); err != nil {
		return lock.FreezeStatus{}, err
	}
	now, err := s.readPolicy(ctx)
	if err != nil {
		return lock.FreezeStatus{}, err
	}
	if err := now.Elsewhere(string(scope)); err != nil {
		return lock.FreezeStatus{}, err
	}
	status := lock.FreezeStatus{}
	if f, found := now.Freezes[scope]; found {
		status, err = s.freezeStatus(ctx, f, now)
		found = err != nil || !f.IsOver(status.AsOf)
		if found {
			return status, err
		}
	}
	return lock.FreezeStatus{}, &lock.Error{Code: lock.ErrNotFound, Detail: "There is no freeze of this scope; or it has ended."}
}

// freezeStatus adds to the freeze how many leases are left. Those that are over are swept, so that they do not count for
// long.
func (s *Store) freezeStatus(ctx context.Context, f lock.Freeze, now *policy.Snapshot) (out lock.FreezeStatus, err error) {
	out.Freeze = f
	scope, others := now.Trees.Stopped(f.Scope)
	err = s.db.Read(ctx, func(ctx context.Context) error {
		n, over, at, err := policy.LeasesOf(ctx, s.db.Rest, s.db.Schema, scope, others)
		out.Leases, out.AsOf = n, at
		s.timers.SweepSoon(over)
		return err
	})
	return out, err
}

// Freezes returns the freezes, see paddock.Service.
func (s *Store) Freezes(ctx context.Context) (all []lock.Freeze, err error) {
	now, err := s.readPolicy(ctx)
	if err != nil {
		return nil, err
	}
	return now.FreezesAt(now.At), nil
}

// SetRule sets a rule, see paddock.Service.
func (s *Store) SetRule(ctx context.Context, r lock.Rule) (lock.Rule, error) {
	r, err := r.Resolve()
	if err != nil {
		return r, err
	}
	if r, err = changePolicy(ctx, s, r, s.policy.SetRule); err == nil {
		s.serveWaiters(r.Scope)
	}
	return r, err
}

// RemoveRule removes a rule, see paddock.Service.
func (s *Store) RemoveRule(ctx context.Context, scope lock.Scope) error {
	if err := lock.CheckScope(scope); err != nil {
		return err
	}
	_, err := changePolicy(ctx, s, scope, func(ctx context.Context, scope lock.Scope) (struct{}, error) {
		return struct{}{}, s.policy.RemoveRule(ctx, scope)
	})
	if err == nil {
		s.serveWaiters(scope)
	}
	return err
}

// Rules returns the rules, see paddock.Service.
func (s *Store) Rules(ctx context.Context) ([]lock.Rule, error) {
	now, err := s.readPolicy(ctx)
	if err != nil {
		return nil, err
	}
	return now.RulesInOrder(), nil
}

// readPolicy reads the policy as it is now.
func (s *Store) readPolicy(ctx context.Context) (now *policy.Snapshot, err error) {
	err = s.db.Read(ctx, func(ctx context.Context) (err error) {
		now, err = s.policy.Read(ctx)
		return err
	})
	return now, err
}

// changePolicy runs a change of the policy.
func changePolicy[Req, Res any](ctx context.Context, s *Store, req Req, change func(context.Context, Req) (Res, error)) (Res, error) {
	return transact(ctx, s, req, transaction[Req, Res]{
		turns: []chan struct{}{s.writers}, read: s.db.Read,
		attempt: change,
	})
}

// maxServed is how many locks are swept at once after a change of the policy. The waiters of others are woken when their
// replicas read the policy.
const maxServed = 10_000

// serveWaiters sweeps the locks of the scope that have waiters, which may be granted them now.
func (s *Store) serveWaiters(scope lock.Scope) {
	s.work.Go(func() {
		err := s.db.Within(func(ctx context.Context) error {
			names, err := policy.WaitedFor(ctx, s.db.Rest, s.db.Schema, scope, maxServed)
			s.timers.SweepSoon(names)
			return err
		})
		s.db.Report("wake waiters after a change of the policy", err)
	})
}
