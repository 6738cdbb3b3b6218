package memlock

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// policy returns what operators have declared. The caller holds the mutex.
func (m *Memory) policy() *lock.Policy {
	return &lock.Policy{Trees: m.trees, Freezes: m.freezes, Rules: m.rules}
}

func (r replica) Freeze(ctx context.Context, q lock.FreezeRequest) (lock.FreezeStatus, error) {
	q, err := q.Resolve()
	if err := cmp.Or(err, contextError(ctx)); err != nil {
		return lock.FreezeStatus{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.policy().CheckFreeze(q.Scope, r.clock.now()); err != nil {
		return lock.FreezeStatus{}, err
	}
	f := lock.Freeze{Scope: q.Scope, Reason: q.Reason, By: q.By, FrozenAt: r.clock.now()}
	if q.For > 0 {
		f.Until = f.FrozenAt.Add(q.For)
	}
	r.freezes[q.Scope] = f
	r.apply(lock.CallerFrom(ctx), lock.NoteFreeze{Freeze: f})
	r.sweepScope(q.Scope)
	return r.freezeStatus(f), nil
}

func (r replica) Thaw(ctx context.Context, q lock.ThawRequest) error {
	if err := cmp.Or(lock.CheckScope(q.Scope), contextError(ctx)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, found := r.freezes[q.Scope]; found && !f.IsOver(r.clock.now()) {
		delete(r.freezes, q.Scope)
		r.apply(lock.CallerFrom(ctx), lock.NoteFreeze{Freeze: f, Thawed: true})
		r.sweepScope(q.Scope)
	}
	return nil
}

func (r replica) Frozen(ctx context.Context, s lock.Scope) (lock.FreezeStatus, error) {
	if err := cmp.Or(lock.CheckScope(s), contextError(ctx)); err != nil {
		return lock.FreezeStatus{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	f, found := r.freezes[s]
	if !found || f.IsOver(r.clock.now()) {
		return lock.FreezeStatus{}, &lock.Error{Code: lock.ErrNotFound, Detail: "There is no freeze of this scope; or it has ended."}
	}
	return r.freezeStatus(f), nil
}

// freezeStatus counts the leases that the freeze waits for. The caller holds the mutex.
func (r replica) freezeStatus(f lock.Freeze) lock.FreezeStatus {
	status := lock.FreezeStatus{Freeze: f, AsOf: r.clock.now()}
	scope, others := r.trees.Stopped(f.Scope)
	for name := range r.locks {
		if scope.Covers(name) || slices.Contains(others, name) {
			l := r.state(name).Lock(status.AsOf)
			status.Leases += len(l.Leases)
		}
	}
	return status
}

func (r replica) Freezes(ctx context.Context) ([]lock.Freeze, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.now()
	all := slices.SortedFunc(maps.Values(r.freezes), func(a, b lock.Freeze) int { return strings.Compare(string(a.Scope), string(b.Scope)) })
	return slices.DeleteFunc(all, func(f lock.Freeze) bool { return f.IsOver(now) }), contextError(ctx)
}

func (r replica) SetRule(ctx context.Context, u lock.Rule) (lock.Rule, error) {
	u, err := u.Resolve()
	if err := cmp.Or(err, contextError(ctx)); err != nil {
		return u, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.policy().CheckRule(u.Scope); err != nil {
		return u, err
	}
	u.SetAt = r.clock.now()
	r.rules[u.Scope] = u
	r.sweepScope(u.Scope)
	return u, nil
}

func (r replica) RemoveRule(ctx context.Context, s lock.Scope) error {
	if err := cmp.Or(lock.CheckScope(s), contextError(ctx)); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rules, s)
	r.sweepScope(s)
	return nil
}

func (r replica) Rules(ctx context.Context) ([]lock.Rule, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.rules), func(a, b lock.Rule) int { return strings.Compare(string(a.Scope), string(b.Scope)) }), contextError(ctx)
}

// sweepScope sweeps the locks of the scope soon, after its policy has changed. The caller holds the mutex.
func (r replica) sweepScope(s lock.Scope) {
	for name := range r.locks {
		if s.Covers(name) || strings.HasPrefix(string(s), name+":") {
			time.AfterFunc(0, func() { r.sweep(name) })
		}
	}
}
