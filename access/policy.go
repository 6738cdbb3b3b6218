package access

import (
	"context"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// Freeze requires a key that covers the whole scope.
func (g *guard) Freeze(ctx context.Context, r lock.FreezeRequest) (lock.FreezeStatus, error) {
	return checkedCall(ctx, g, requirement{role: Admin, scopes: scopeOf(r.Scope)},
		func(ctx context.Context) (lock.FreezeStatus, error) {
			r.By = lock.CallerFrom(ctx).Name
			return g.inner.Freeze(ctx, r)
		})
}

// Thaw requires a key that covers the whole scope.
func (g *guard) Thaw(ctx context.Context, r lock.ThawRequest) error {
	_, err := checkedCall(ctx, g, requirement{role: Admin, scopes: scopeOf(r.Scope)},
		func(ctx context.Context) (struct{}, error) { return struct{}{}, g.inner.Thaw(ctx, r) })
	return err
}

// Frozen requires a key that covers the whole scope.
func (g *guard) Frozen(ctx context.Context, s lock.Scope) (lock.FreezeStatus, error) {
	return checkedCall(ctx, g, requirement{role: Read, scopes: scopeOf(s)},
		func(ctx context.Context) (lock.FreezeStatus, error) { return g.inner.Frozen(ctx, s) })
}

// Freezes hides the freezes of scopes in which the key covers no name.
func (g *guard) Freezes(ctx context.Context) ([]lock.Freeze, error) {
	return checkedCall(ctx, g, requirement{role: Read}, func(ctx context.Context) ([]lock.Freeze, error) {
		all, err := g.inner.Freezes(ctx)
		return reached(ctx, all, func(f lock.Freeze) lock.Scope { return f.Scope }), err
	})
}

// SetRule requires a key that covers the whole scope.
func (g *guard) SetRule(ctx context.Context, r lock.Rule) (lock.Rule, error) {
	return checkedCall(ctx, g, requirement{role: Admin, scopes: scopeOf(r.Scope)},
		func(ctx context.Context) (lock.Rule, error) {
			r.SetBy = lock.CallerFrom(ctx).Name
			return g.inner.SetRule(ctx, r)
		})
}

// RemoveRule requires a key that covers the whole scope.
func (g *guard) RemoveRule(ctx context.Context, s lock.Scope) error {
	_, err := checkedCall(ctx, g, requirement{role: Admin, scopes: scopeOf(s)},
		func(ctx context.Context) (struct{}, error) { return struct{}{}, g.inner.RemoveRule(ctx, s) })
	return err
}

// Rules hides the rules of scopes in which the key covers no name.
func (g *guard) Rules(ctx context.Context) ([]lock.Rule, error) {
	return checkedCall(ctx, g, requirement{role: Read}, func(ctx context.Context) ([]lock.Rule, error) {
		all, err := g.inner.Rules(ctx)
		return reached(ctx, all, func(r lock.Rule) lock.Scope { return r.Scope }), err
	})
}

// scopeOf returns the names of which a freeze or a rule is.
func scopeOf(s lock.Scope) []scope {
	return []scope{{field: "scope", text: string(s), isPrefix: s.IsPrefix()}}
}

// reached returns those of the items whose scopes have a name that the key in the context covers.
func reached[T any](ctx context.Context, all []T, of func(T) lock.Scope) []T {
	k, ok := KeyFrom(ctx)
	return slices.DeleteFunc(slices.Clone(all), func(item T) bool { return !ok || !k.reachesScope(of(item)) })
}

// reachesScope reports whether the key covers a name of the scope.
func (k Key) reachesScope(s lock.Scope) bool {
	return k.Covers(string(s)) ||
		s.IsPrefix() && slices.ContainsFunc(k.Prefixes, func(p string) bool { return strings.HasPrefix(p, string(s)) })
}
