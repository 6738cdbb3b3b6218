package cell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// moveTimeout is how long a call waits for a group that moves from cell to cell.
	moveTimeout = 10 * time.Second
	// movePause is how long a call waits before it asks again where a group is.
	movePause = 50 * time.Millisecond
	// awayTimeout is how long a call that asks several cells waits for one that does not answer.
	awayTimeout = 2 * time.Second
	// lateTimeout is awayTimeout for a cell that did not answer the last time.
	lateTimeout = 500 * time.Millisecond
	// retryAfter is the delay that callers are given who cannot reach a cell.
	retryAfter = time.Second
)

// A Store is the Service of one cell.
type Store interface {
	paddock.Service
	// Placement returns which cells and groups the cell knows. It is never nil; another pointer tells of a change.
	Placement() *placement.Map
	// Leave makes the cell say that a group leaves it, unless it knows something as new. It has moved to the row's cell.
	Leave(context.Context, placement.Row) error
	// Ready returns an error while the cell cannot be used. Callers are told the detail of a *lock.Error.
	Ready(context.Context) error
	// Epoch returns the number of the newest epoch of the cell's database.
	Epoch() int64
}

// A Router is a paddock.Service over several cells. Make one with New.
type Router struct {
	cells    []*member
	byName   map[string]*member
	sessions sessionCells

	info   sync.Mutex
	infoAt time.Time
	known  []paddock.Cell
}

var _ paddock.Service = (*Router)(nil)

// A member is a cell of a Router.
type member struct {
	name string
	open atomic.Pointer[Store] // nil while the cell is away since the start
	late atomic.Bool           // it did not answer the last time

	listed sync.Map // what it has listed last, by the type of the items
}

// New returns a Router over the cells of these names, which are all away until Set opens them.
func New(names ...string) *Router {
	r := &Router{byName: map[string]*member{}}
	for _, name := range names {
		m := &member{name: name}
		r.cells = append(r.cells, m)
		r.byName[name] = m
	}
	return r
}

// names returns the names of the cells.
func (r *Router) names() (all []string) {
	for _, m := range r.cells {
		all = append(all, m.name)
	}
	return all
}

// Set makes the store the Service of the cell. It may be called while the Router is in use.
func (r *Router) Set(name string, s Store) { r.byName[name].open.Store(&s) }

// service returns the Service of the cell, or ErrUnavailable.
func (m *member) service() (paddock.Service, error) {
	if s := m.open.Load(); s != nil {
		return *s, nil
	}
	return nil, m.explain(&lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Detail: "Its database was not reachable yet. Retry."})
}

// explain returns err with the name of the cell, if it says that the cell cannot be used.
func (m *member) explain(err error) error {
	if err == nil {
		return nil
	}
	e := (*lock.Error)(nil)
	if !errors.As(err, &e) || e.Code != lock.ErrUnavailable && e.Code != lock.ErrUnknownOutcome && e.Code != lock.ErrInternal {
		return err
	}
	named := *e
	named.Detail = fmt.Sprintf("Cell %s: %s", m.name, e.Detail)
	if e != err { //nolint:errorlint // a wrapping error has a cause that operators need
		named.Cause = err
	}
	return &named
}

// maps returns what the cells know of the placement, nil for a cell that is away since the start.
func (r *Router) maps() []*placement.Map {
	all := make([]*placement.Map, len(r.cells))
	for i, m := range r.cells {
		if s := m.open.Load(); s != nil {
			all[i] = (*s).Placement()
		}
	}
	return all
}

// newest returns the newest set of cells that is known; an empty one if all cells are away since the start.
func (r *Router) newest() *placement.Map {
	newest := &placement.Map{}
	for _, m := range r.maps() {
		if m != nil && (newest.Self == "" || m.Generation > newest.Generation) {
			newest = m
		}
	}
	return newest
}

// of returns the cell to ask about the group.
func (r *Router) of(group string) (*member, error) {
	return r.named(placement.Route(group, r.maps()...), group)
}

// named returns the cell of that name, which has the group.
func (r *Router) named(cell, group string) (*member, error) {
	if m := r.byName[cell]; m != nil {
		return m, nil
	}
	detail := fmt.Sprintf("The locks of the group %s are in the cell %s, which this replica was not given: add it to --cell.", group, cell)
	if cell == "" {
		detail = fmt.Sprintf("It is not known which cell has the locks of the group %s, since none of %s was reachable yet. Retry.", group,
			strings.Join(r.names(), ", "))
	}
	return nil, &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Detail: detail}
}

// at calls do at the cell that has the group. It follows a group that has moved, and waits for one that moves, for
// moveTimeout at most.
func at[T any](ctx context.Context, r *Router, group string, do func(*member, paddock.Service) (T, error)) (out T, err error) {
	m, err := r.of(group)
	var elsewhere *placement.ElsewhereError
	for began, again := time.Now(), false; err == nil; again = true {
		var s paddock.Service
		if s, err = m.service(); err != nil {
			break
		}
		out, err = do(m, s)
		switch {
		case err == nil:
			return out, nil
		case !errors.As(err, &elsewhere):
			return out, m.explain(err)
		case !again && !elsewhere.Leaving:
			m, err = r.named(elsewhere.Cell, group)
		case time.Since(began) > moveTimeout || !pause(ctx, movePause):
			return out, err
		default:
			m, err = r.of(group)
		}
	}
	return out, err
}

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// A reply is what one cell has answered, one of several that were asked.
type reply[T any] struct {
	from *member
	of   T
	err  error
}

// ask calls do at a cell.
func ask[T any](ctx context.Context, m *member, do func(context.Context, paddock.Service) (T, error)) reply[T] {
	a := reply[T]{from: m}
	var s paddock.Service
	if s, a.err = m.service(); a.err == nil {
		a.of, a.err = do(ctx, s)
		a.err = m.explain(a.err)
	}
	return a
}

// askAll calls do at the cells at once, and returns the replies in their order. It waits awayTimeout more than the wait
// for a cell that does not answer, or lateTimeout if that cell did not answer the last time, so that it does not delay
// others for long.
func askAll[T any](ctx context.Context, cells []*member, do func(context.Context, paddock.Service) (T, error)) []reply[T] {
	replies := make([]reply[T], len(cells))
	var asked sync.WaitGroup
	for i, m := range cells {
		asked.Go(func() { replies[i] = askBounded(ctx, m, 0, do) })
	}
	asked.Wait()
	return replies
}

// askBounded is ask within the time of askAll.
func askBounded[T any](ctx context.Context, m *member, wait time.Duration, do func(context.Context, paddock.Service) (T, error)) reply[T] {
	limit := awayTimeout
	if m.late.Load() {
		limit = lateTimeout
	}
	bounded, cancel := context.WithTimeout(ctx, wait+limit)
	defer cancel()
	a := ask(bounded, m, do)
	m.late.Store(bounded.Err() != nil && ctx.Err() == nil)
	return a
}

// isAway reports whether err says that a cell cannot be used at present.
func isAway(err error) bool {
	return errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrInternal)
}
