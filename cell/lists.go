package cell

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

// owns reports whether the cell is the one to ask about the name. While a group moves, both cells may list its locks.
func (r *Router) owns(m *member, name string) bool {
	owner, err := r.of(placement.Group(name))
	return err == nil && owner == m
}

// Trees returns the trees of all cells, see paddock.Service.
func (r *Router) Trees(ctx context.Context) ([]lock.Tree, error) {
	return listAll(ctx, r, func(t lock.Tree) string { return t.Root }, paddock.Service.Trees)
}

// Freezes returns the freezes of all cells, see paddock.Service.
func (r *Router) Freezes(ctx context.Context) ([]lock.Freeze, error) {
	return listAll(ctx, r, func(f lock.Freeze) string { return string(f.Scope) }, paddock.Service.Freezes)
}

// Rules returns the rules of all cells, see paddock.Service.
func (r *Router) Rules(ctx context.Context) ([]lock.Rule, error) {
	return listAll(ctx, r, func(u lock.Rule) string { return string(u.Scope) }, paddock.Service.Rules)
}

// listAll returns what the cells list, in the order of the names. For a cell that is away it is what that cell has
// listed last: nothing changes there meanwhile. It is nothing for a cell that was away since the start.
func listAll[T any](ctx context.Context, r *Router, name func(T) string, list func(paddock.Service, context.Context) ([]T, error)) ([]T, error) {
	var all []T
	for _, a := range askAll(ctx, r.cells, func(ctx context.Context, s paddock.Service) ([]T, error) { return list(s, ctx) }) {
		if last, listed := a.from.listed.Load(reflect.TypeFor[T]()); listed && isAway(a.err) {
			a.of = last.([]T)
		} else if a.err == nil {
			a.from.listed.Store(reflect.TypeFor[T](), a.of)
		} else if !isAway(a.err) {
			return nil, a.err
		}
		for _, item := range a.of {
			if r.owns(a.from, name(item)) {
				all = append(all, item)
			}
		}
	}
	slices.SortFunc(all, func(x, y T) int { return strings.Compare(name(x), name(y)) })
	return all, nil
}

// merge returns the items of pages of the cells, in their order, and the last one that is known of all cells: a page
// that is not the last of its cell says nothing of the items after its own. It is nil if no page follows. A cell that
// is away is Unreadable, unless all are.
func merge[T any](replies []reply[paddock.Page[T]], owns func(*member, T) bool, compare func(x, y T) int) (page paddock.Page[T], last *T, err error) {
	away := 0
	for _, a := range replies {
		if a.err != nil && !isAway(a.err) {
			return page, nil, a.err
		}
		if a.err != nil {
			away, err = away+1, a.err
			page.Unreadable = append(page.Unreadable, missing(a.from, a.err))
			continue
		}
		page.Unreadable = append(page.Unreadable, a.of.Unreadable...)
		for _, item := range a.of.Items {
			if owns(a.from, item) {
				page.Items = append(page.Items, item)
			}
		}
		if n := len(a.of.Items); a.of.Next != "" && n > 0 && (last == nil || compare(a.of.Items[n-1], *last) < 0) {
			last = &a.of.Items[n-1]
		}
	}
	if away == len(replies) {
		return page, nil, err
	}
	slices.SortStableFunc(page.Items, compare)
	if last != nil {
		page.Items = slices.DeleteFunc(page.Items, func(item T) bool { return compare(item, *last) > 0 })
	}
	return page, last, nil
}

// missing is what a list says of a cell that is away.
func missing(m *member, err error) paddock.Unreadable {
	return paddock.Unreadable{Detail: "What cell " + m.name + " has is missing here. " + awayText(err)}
}

// Locks returns a page of the locks of all cells, see paddock.Service. While a group moves, both cells may list its
// locks.
func (r *Router) Locks(ctx context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	q, err := q.Resolve()
	if err == nil {
		_, err = q.After()
	}
	if err != nil {
		return paddock.Page[lock.Lock]{}, err
	}
	page, last, err := merge(
		askAll(ctx, r.cells, func(ctx context.Context, s paddock.Service) (paddock.Page[lock.Lock], error) { return s.Locks(ctx, q) }),
		func(m *member, l lock.Lock) bool { return r.owns(m, l.Name) },
		func(x, y lock.Lock) int { return strings.Compare(x.Name, y.Name) })
	switch {
	case err != nil:
		return page, err
	case q.Sort != paddock.ByName:
		page.Items = q.Top(page.Items)
		return page, nil
	case len(page.Items) > q.Limit:
		page.Items = page.Items[:q.Limit]
		last = &page.Items[q.Limit-1]
	}
	if last != nil {
		page.Next = paddock.LockCursor(last.Name)
	}
	return page, nil
}

// Sessions returns a page of the sessions of all cells, see paddock.Service. A session is in the page once.
func (r *Router) Sessions(ctx context.Context, q paddock.SessionQuery) (paddock.Page[lock.SessionInfo], error) {
	q, err := q.Resolve()
	if err == nil {
		_, err = q.After()
	}
	if err != nil {
		return paddock.Page[lock.SessionInfo]{}, err
	}
	page, last, err := merge(
		askAll(ctx, r.cells, func(ctx context.Context, s paddock.Service) (paddock.Page[lock.SessionInfo], error) {
			return s.Sessions(ctx, q)
		}),
		func(*member, lock.SessionInfo) bool { return true },
		func(x, y lock.SessionInfo) int { return cmp.Compare(x.Ref, y.Ref) })
	if err != nil {
		return page, err
	}
	all := page.Items
	page.Items = nil
	for n := 0; len(all) > 0 && len(page.Items) < q.Limit; all = all[n:] {
		for n = 1; n < len(all) && all[n].Ref == all[0].Ref; n++ {
		}
		page.Items = append(page.Items, together(all[:n]))
	}
	if len(all) > 0 {
		last = &page.Items[q.Limit-1]
	}
	if last != nil {
		page.Next = last.Ref.String()
	}
	return page, nil
}
