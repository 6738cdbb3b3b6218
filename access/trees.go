package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// DeclareTree requires a key for the root. Such a key covers the whole tree.
func (g *guard) DeclareTree(ctx context.Context, root string) (lock.Tree, error) {
	return checkedCall(ctx, g, requirement{role: Admin, scopes: singleName("root", root)},
		func(ctx context.Context) (lock.Tree, error) { return g.inner.DeclareTree(ctx, root) })
}

func (g *guard) RemoveTree(ctx context.Context, root string) error {
	_, err := checkedCall(ctx, g, requirement{role: Admin, scopes: singleName("root", root)},
		func(ctx context.Context) (struct{}, error) { return struct{}{}, g.inner.RemoveTree(ctx, root) })
	return err
}

// Trees hides the trees in which the key covers no name.
func (g *guard) Trees(ctx context.Context) ([]lock.Tree, error) {
	return checkedCall(ctx, g, requirement{role: Read}, func(ctx context.Context) ([]lock.Tree, error) {
		all, err := g.inner.Trees(ctx)
		k, ok := KeyFrom(ctx)
		return slices.DeleteFunc(slices.Clone(all), func(t lock.Tree) bool { return !ok || !k.reaches(t) }), err
	})
}

// reaches reports whether the key covers a name in the tree.
func (k Key) reaches(t lock.Tree) bool {
	return k.Covers(t.Root) || slices.ContainsFunc(k.Prefixes, func(p string) bool { return strings.HasPrefix(p, t.Root+":") })
}

// hideRefusal hides the locks in a refusal of an acquire that the key in the context does not cover.
func hideRefusal(ctx context.Context, err error) error { return hideAbove(ctx, hideCycle(ctx, err)) }

// hideAbove hides the lock above in a tree that is in the way, unless the key in the context covers it.
func hideAbove(ctx context.Context, err error) error {
	e := new(lock.Error)
	if !errors.As(err, &e) || len(e.Blocked) == 0 {
		return err
	}
	out := *e
	out.Blocked = slices.Clone(e.Blocked)
	hidden := false
	for i := range out.Blocked {
		if b := &out.Blocked[i]; hideNames(ctx, []string{b.Name})[0] == notCovered {
			b.Name, b.Holder, hidden = notCovered, notCovered, true
		}
	}
	if !hidden {
		return err
	}
	out.Code, out.Holder, out.Reason, out.FrozenBy, out.FrozenUntil, out.DoneAt = lock.ErrHeld, notCovered, "", "", time.Time{}, time.Time{}
	out.Detail = "A lock above, which the API key does not cover, is held, waited for, or closed. Retry later, " +
		"or wait with wait_ms (not in a batch)."
	return &out
}
