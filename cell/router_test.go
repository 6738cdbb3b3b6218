package cell_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/cell"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// A fixture is a router over three cells in memory.
type fixture struct {
	*testing.T
	paddock.Service
	cells []*switched
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{T: t}
	for i, m := range placed(3) {
		s := &switched{Service: memlock.NewCell(i).Replica(1)}
		s.placed.Store(m)
		f.cells = append(f.cells, s)
	}
	f.Service = f.again()
	return f
}

// again returns another router over the cells.
func (f *fixture) again() *cell.Router {
	r := cell.New("cell-0", "cell-1", "cell-2")
	for i, s := range f.cells {
		r.Set(fmt.Sprintf("cell-%d", i), s)
	}
	return r
}

// A switched cell can be away, and groups can move to and from it.
type switched struct {
	paddock.Service
	away   atomic.Bool
	dies   atomic.Bool // with the next close of a session
	placed atomic.Pointer[placement.Map]
}

func (s *switched) Placement() *placement.Map                  { return s.placed.Load() }
func (s *switched) Leave(context.Context, placement.Row) error { return nil }
func (s *switched) Ready(context.Context) error                { return s.check() }
func (s *switched) Epoch() int64                               { return 1 }

// check returns the error of a cell that is away, or does not have the group of the names.
func (s *switched) check(names ...string) error {
	if s.away.Load() {
		return &lock.Error{Code: lock.ErrUnavailable, Detail: "The database is away."}
	}
	return s.placed.Load().Elsewhere(names...)
}

func (s *switched) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if err := s.check(a.Names()...); err != nil {
		return lock.Grant{}, err
	}
	return s.Service.Acquire(ctx, a)
}

func (s *switched) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	return paddock.BatchSequentially(ctx, s, items)
}

func (s *switched) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	if err := s.check(); err != nil {
		return lock.SessionGrant{}, err
	}
	return s.Service.OpenSession(ctx, o)
}

func (s *switched) RenewSession(ctx context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	if err := s.check(); err != nil {
		return lock.SessionGrant{}, err
	}
	return s.Service.RenewSession(ctx, r)
}

func (s *switched) CloseSession(ctx context.Context, c lock.CloseSession) error {
	if s.dies.Load() {
		s.away.Store(true)
	}
	if err := s.check(); err != nil {
		return err
	}
	return s.Service.CloseSession(ctx, c)
}

func (s *switched) Session(ctx context.Context, ref lock.SessionRef) (lock.SessionInfo, error) {
	if err := s.check(); err != nil {
		return lock.SessionInfo{}, err
	}
	return s.Service.Session(ctx, ref)
}

func (s *switched) Trees(ctx context.Context) ([]lock.Tree, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return s.Service.Trees(ctx)
}

func (s *switched) Locks(ctx context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	if err := s.check(); err != nil {
		return paddock.Page[lock.Lock]{}, err
	}
	return s.Service.Locks(ctx, q)
}

func (s *switched) Events(ctx context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	if err := s.check(); err != nil {
		return paddock.Page[lock.Event]{}, err
	}
	return s.Service.Events(ctx, q)
}

// place makes all cells know that the group is in a cell, or that it leaves for it.
func (f *fixture) place(group, in string, generation int64, state func(self string) placement.State) {
	for _, s := range f.cells {
		m := *s.placed.Load()
		m.Rows = map[string]placement.Row{group: {Group: group, Cell: in, Generation: generation, State: state(m.Self)}}
		s.placed.Store(&m)
	}
}

// in returns the name of a lock in the cell.
func in(cell int) string {
	for n := 0; ; n++ {
		if name := fmt.Sprintf("group-%d", n); placement.Home(name, placed(3)[0].Cells) == placed(3)[cell].Self {
			return name + ":lock"
		}
	}
}

func acquireOf(names ...string) lock.Acquire {
	a := lock.Acquire{Holder: "worker", TTL: time.Minute, LeaseID: lock.LeaseID(uuid.New())}
	for _, name := range names {
		a.Locks = append(a.Locks, lock.Member{Name: name})
	}
	return a
}

func (f *fixture) mustAcquire(a lock.Acquire) lock.Grant {
	f.Helper()
	g, err := f.Acquire(f.Context(), a)
	if err != nil {
		f.Fatal(err)
	}
	return g
}

func (f *fixture) mustOpen() lock.SessionGrant {
	f.Helper()
	g, err := f.OpenSession(f.Context(), lock.OpenSession{ID: lock.SessionID(uuid.New()), Holder: "worker", TTL: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	return g
}

// inSession returns an acquire in the session.
func inSession(g lock.SessionGrant, name string) lock.Acquire {
	a := acquireOf(name)
	a.TTL, a.SessionID = 0, g.ID
	return a
}

func (f *fixture) renew(g lock.SessionGrant) error {
	_, err := f.RenewSession(f.Context(), lock.RenewSession{ID: g.ID})
	return err
}

// homeOf returns the cell that registers the session.
func (f *fixture) homeOf(g lock.SessionGrant) int {
	return slices.IndexFunc(f.cells, func(s *switched) bool { _, err := s.Service.Session(f.Context(), g.ID.Ref()); return err == nil })
}

func TestASetOverCellsIsRefusedWithNamesAndCells(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, err := f.Acquire(t.Context(), acquireOf(in(0), in(0)+"2", in(2)))
	e := (*lock.Error)(nil)
	if !errors.As(err, &e) || e.Code != lock.ErrInvalid || e.Field != "locks/2/name" {
		t.Fatalf("the error is %v", err)
	}
	for _, part := range []string{in(0), in(2), "cell-0", "cell-2"} {
		if !strings.Contains(e.Detail, part) {
			t.Errorf("the detail lacks %s: %s", part, e.Detail)
		}
	}
	err = f.Release(t.Context(), lock.Release{Locks: []string{in(0), in(1)}, LeaseID: lock.LeaseID(uuid.New())})
	if !errors.As(err, &e) || e.Code != lock.ErrInvalid || e.Field != "names/1" {
		t.Errorf("the release has the error %v", err)
	}
	_, err = f.WriteFenced(t.Context(), lock.FencedWrite{Key: in(0), Lock: in(1), Token: 1, Value: []byte("1")})
	if !errors.As(err, &e) || e.Code != lock.ErrInvalid || e.Field != "lock" || !strings.Contains(e.Detail, "cell-1") {
		t.Errorf("the fenced write has the error %v", err)
	}
}

func TestTokensAndEventsOfCellsDiffer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tokens, ids := map[lock.Token]bool{}, map[int64]bool{}
	for n := range 9 {
		tokens[f.mustAcquire(acquireOf(fmt.Sprint(in(n%3), n))).Token] = true
	}
	q := paddock.EventQuery{Limit: 2}
	for {
		page, err := f.Events(t.Context(), q)
		if err != nil || len(page.Items) == 0 {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		for _, e := range page.Items {
			ids[e.ID] = true
		}
		q.Cursor = page.Next
	}
	if len(tokens) != 9 || len(ids) != 9 {
		t.Errorf("there are %d tokens and %d events of 9 grants", len(tokens), len(ids))
	}
}

func TestAGroupThatHasMovedIsFollowed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		group := placement.Group(in(0))
		f.place(group, "cell-1", 2, func(self string) placement.State {
			if self == "cell-1" {
				return placement.Here
			}
			return placement.Gone
		})
		g := f.mustAcquire(acquireOf(in(0)))
		l, err := f.cells[1].Lock(t.Context(), in(0))
		if err != nil || len(l.Leases) != 1 || l.Leases[0].Token != g.Token {
			t.Errorf("the lock in cell-1 is %+v, %v", l, err)
		}
		results := f.Batch(t.Context(), []lock.Command{acquireOf(in(0) + "2"), acquireOf(in(1)), acquireOf(in(2), in(1))})
		if results[0].Err != nil || results[1].Err != nil || !errors.Is(results[2].Err, lock.ErrInvalid) {
			t.Errorf("the batch is answered %+v", results)
		}
	})
}

func TestACallWaitsForAGroupThatMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		group := placement.Group(in(0))
		f.place(group, "cell-1", 2, func(string) placement.State { return placement.Leaving })
		time.AfterFunc(3*time.Second, func() {
			f.place(group, "cell-1", 2, func(self string) placement.State {
				if self == "cell-1" {
					return placement.Here
				}
				return placement.Gone
			})
		})
		began := time.Now()
		f.mustAcquire(acquireOf(in(0)))
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("the call took %v", took)
		}
		f.place(group, "cell-2", 3, func(string) placement.State { return placement.Leaving })
		began = time.Now()
		_, err := f.Acquire(t.Context(), acquireOf(in(0)))
		e := (*lock.Error)(nil)
		if took := time.Since(began); !errors.As(err, &e) || e.Code != lock.ErrUnavailable || e.RetryAfter == 0 || took < 9*time.Second || took > 11*time.Second {
			t.Errorf("after %v the error is %v", took, err)
		}
	})
}

func TestACellThatIsAwayCostsItsOwnGroupsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for n := range 3 {
		f.mustAcquire(acquireOf(in(n)))
	}
	for n := range 3 {
		if _, err := f.DeclareTree(t.Context(), in(n)+":tree"); err != nil {
			t.Fatal(err)
		}
	}
	if trees, err := f.Trees(t.Context()); err != nil || len(trees) != 3 {
		t.Fatalf("the trees are %v, %v", trees, err)
	}
	f.cells[1].away.Store(true)
	if trees, err := f.Trees(t.Context()); err != nil || len(trees) != 3 {
		t.Errorf("while a cell is away the trees are %v, %v", trees, err)
	}
	_, err := f.Acquire(t.Context(), acquireOf(in(1)+"2"))
	if !errors.Is(err, lock.ErrUnavailable) || !strings.Contains(err.Error(), "cell-1") {
		t.Errorf("its group has the error %v", err)
	}
	results := f.Batch(t.Context(), []lock.Command{acquireOf(in(0) + "2"), acquireOf(in(1) + "2"), acquireOf(in(2) + "2")})
	if results[0].Err != nil || !errors.Is(results[1].Err, lock.ErrUnavailable) || results[2].Err != nil {
		t.Errorf("the batch is answered %+v", results)
	}
	page, err := f.Locks(t.Context(), paddock.LockQuery{})
	if err != nil || len(page.Items) != 4 || len(page.Unreadable) != 1 || !strings.Contains(page.Unreadable[0].Detail, "cell-1") {
		t.Errorf("the list is %+v, %v", page, err)
	}
	events, err := f.Events(t.Context(), paddock.EventQuery{})
	if err != nil || len(events.Items) != 4 || len(events.Unreadable) != 1 {
		t.Errorf("the events are %+v, %v", events, err)
	}
	f.cells[1].away.Store(false)
	events, err = f.Events(t.Context(), paddock.EventQuery{Cursor: events.Next})
	if err != nil || len(events.Items) != 1 || events.Items[0].Name != in(1) {
		t.Errorf("later the events are %+v, %v", events, err)
	}
}

func TestCellsSayWhichIsAwayAndWhatWasMoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		r := f.again()
		f.place("billing", "cell-2", 2, func(string) placement.State { return placement.Leaving })
		f.cells[1].away.Store(true)
		all := r.Cells(t.Context())
		if len(all) != 3 || all[0].Away != "" || !strings.Contains(all[1].Away, "away") || all[2].Position != 2 || !all[2].Takes || all[2].Epoch != 1 ||
			!slices.Equal(all[2].Groups, []paddock.CellGroup{{Name: "billing", Moving: true}}) {
			t.Errorf("the cells are %+v", all)
		}
		if err := r.Ready(t.Context()); err != nil {
			t.Errorf("with two cells it is not ready: %v", err)
		}
		f.cells[0].away.Store(true)
		f.cells[2].away.Store(true)
		time.Sleep(time.Second)
		if err := r.Ready(t.Context()); !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("without a cell the error is %v", err)
		}
	})
}

func TestAStreamGoesOnWhileACellIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		page, err := f.Events(t.Context(), paddock.EventQuery{Cursor: paddock.CursorNow})
		if err != nil {
			t.Fatal(err)
		}
		f.cells[1].away.Store(true)
		q := paddock.EventQuery{Cursor: page.Next, Wait: 15 * time.Second}
		began := time.Now()
		if page, err = f.Events(t.Context(), q); err != nil || len(page.Items)+len(page.Unreadable) != 0 || time.Since(began) > 2*time.Second || time.Since(began) < time.Second/2 {
			t.Fatalf("after %v the page is %+v, %v", time.Since(began), page, err)
		}
		q.Cursor = page.Next
		f.mustAcquire(acquireOf(in(2)))
		if page, err = f.Events(t.Context(), q); err != nil || len(page.Items) != 1 {
			t.Fatalf("the page is %+v, %v", page, err)
		}
		f.cells[1].away.Store(false)
		f.mustAcquire(acquireOf(in(1)))
		q.Cursor = page.Next
		if page, err = f.Events(t.Context(), q); err != nil || len(page.Items) != 1 || page.Items[0].Name != in(1) {
			t.Fatalf("the last page is %+v, %v", page, err)
		}
	})
}

func TestListsAreMergedPageByPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []string
	for n := range 20 {
		name := fmt.Sprintf("g%02d:x", n)
		want = append(want, name)
		f.mustAcquire(acquireOf(name))
	}
	var got []string
	for q := (paddock.LockQuery{Limit: 3}); ; {
		page, err := f.Locks(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Items {
			got = append(got, l.Name)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the list is %v", got)
	}
	var newest []string
	for q := (paddock.EventQuery{Limit: 3, Descending: true}); ; {
		page, err := f.Events(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			newest = append(newest, e.Name)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	slices.Sort(newest)
	if !slices.Equal(newest, want) {
		t.Errorf("the events in descending order are of %v", newest)
	}
}
