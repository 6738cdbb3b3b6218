package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// scopesOf returns the scopes of a call on these locks. The format is of the field of one of several.
func scopesOf(names []string, format string) []scope {
	if len(names) == 1 {
		return singleName("name", names[0])
	}
	scopes := make([]scope, len(names))
	for i, name := range names {
		scopes[i] = scope{field: fmt.Sprintf(format, i), text: name}
	}
	return scopes
}

// hidden returns a function that passes the answer of a read through hide.
func hidden[T any](ctx context.Context, hide func(context.Context, T) T) func(T, error) (T, error) {
	return func(answer T, err error) (T, error) { return hide(ctx, answer), err }
}

// hideLock hides the names of sets, the leases above, and the scope of a freeze, that the key in the context does not
// cover.
func hideLock(ctx context.Context, l lock.Lock) lock.Lock {
	if k, ok := KeyFrom(ctx); l.Frozen != nil && (!ok || !k.reachesScope(l.Frozen.Scope)) {
		frozen := *l.Frozen
		frozen.Scope = notCovered
		l.Frozen = &frozen
	}
	l.Leases, l.Above, l.Below = hideLeases(ctx, l.Leases), hideLeases(ctx, l.Above), hideLeases(ctx, l.Below)
	return l
}

// hideQueue hides the names of sets that the key in the context does not cover.
func hideQueue(ctx context.Context, q lock.QueueInfo) lock.QueueInfo {
	q.Waiters = slices.Clone(q.Waiters)
	for i := range q.Waiters {
		w := &q.Waiters[i]
		w.Set, w.Leases = hideNames(ctx, w.Set), hideLeases(ctx, w.Leases)
		if w.BlockedAt != "" {
			w.BlockedAt = hideNames(ctx, []string{w.BlockedAt})[0]
		}
	}
	if q.Chain != nil {
		q.Chain = &lock.WaitChain{Steps: hideSteps(ctx, q.Chain.Steps), End: q.Chain.End}
	}
	return q
}

// hideCycle hides the locks of a deadlock that the key in the context does not cover, and their holders.
func hideCycle(ctx context.Context, err error) error {
	e := new(lock.Error)
	if !errors.As(err, &e) || e.Code != lock.ErrDeadlock {
		return err
	}
	return lock.DeadlockError(hideSteps(ctx, e.Cycle))
}

// hideSteps returns the steps, without the names and the holders of locks that the key in the context does not cover.
func hideSteps(ctx context.Context, steps []lock.DeadlockStep) []lock.DeadlockStep {
	steps = slices.Clone(steps)
	for i := range steps {
		s := &steps[i]
		if hideNames(ctx, []string{s.Name})[0] == notCovered {
			*s = lock.DeadlockStep{Name: notCovered, Holder: notCovered, WaitsFor: notCovered, Ahead: s.Ahead}
		}
		if s.At != "" && hideNames(ctx, []string{s.At})[0] == notCovered {
			s.At, s.WaitsFor = notCovered, notCovered
		}
	}
	return steps
}

// hideEvents hides the locks of deadlocks and of sets that the key in the context does not cover, the holders there,
// and the names of other keys, see [Key.seesName].
func hideEvents(ctx context.Context, p paddock.Page[lock.Event]) paddock.Page[lock.Event] {
	k, known := KeyFrom(ctx)
	if known && len(k.Prefixes) == 0 {
		return p
	}
	p.Items = slices.Clone(p.Items) // others have them, too
	for i := range p.Items {
		e := &p.Items[i]
		e.Cycle, e.Set = lock.CycleOf(hideSteps(ctx, e.Cycle.Steps())), hideNames(ctx, e.Set)
		if !known || !k.seesName(e) {
			e.Caller.Name = e.Caller.KeyID
		}
	}
	return p
}

// seesName reports whether a reader with the key, which has prefixes, sees the name of the key that caused the event, and
// not just its id: an operator sees all names, and all readers see that of an operator.
func (k Key) seesName(e *lock.Event) bool {
	return k.Role == Admin || k.ID == e.Caller.KeyID || e.Kind.ByOperator()
}

// hidePage hides the names of sets that the key in the context does not cover.
func hidePage(ctx context.Context, p paddock.Page[lock.Lock]) paddock.Page[lock.Lock] {
	p.Items = slices.Clone(p.Items)
	for i := range p.Items {
		p.Items[i] = hideLock(ctx, p.Items[i])
	}
	return p
}

// hideLeases returns the leases without the names that the key in the context does not cover. Of those of a lock that
// it does not cover only the times are left.
func hideLeases(ctx context.Context, leases []lock.LeaseInfo) []lock.LeaseInfo {
	if !slices.ContainsFunc(leases, func(l lock.LeaseInfo) bool { return l.Set != nil || l.Name != "" }) {
		return leases
	}
	leases = slices.Clone(leases)
	for i := range leases {
		l := &leases[i]
		l.Set = hideNames(ctx, l.Set)
		if l.Name != "" && hideNames(ctx, []string{l.Name})[0] == notCovered {
			*l = lock.LeaseInfo{
				Name: notCovered, Holder: notCovered, Mode: l.Mode, Token: l.Token, AcquiredAt: l.AcquiredAt, ExpiresAt: l.ExpiresAt,
				Remaining: l.Remaining, Grace: l.Grace, Revoked: l.Revoked,
			}
		}
	}
	return leases
}

// hideNames returns the names, each notCovered that the key in the context does not cover.
func hideNames(ctx context.Context, names []string) []string {
	k, ok := KeyFrom(ctx)
	names = slices.Clone(names) // others have them, too
	for i, name := range names {
		if !ok || !k.Covers(name) {
			names[i] = notCovered
		}
	}
	return names
}
