package cells_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/store/internal/cells"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A harness is a deployment of some cells, with a store on each.
type harness struct {
	*testing.T
	cells  []cells.Cell
	stores map[string]*store.Store
}

// newHarness returns a deployment of cells with these names, all of which take groups.
func newHarness(t *testing.T, names ...string) *harness {
	t.Helper()
	h := &harness{T: t, stores: make(map[string]*store.Store)}
	for _, name := range names {
		h.cells = append(h.cells, cells.Cell{Name: name, URL: pgtest.URL(t)})
	}
	if err := store.RegisterCells(t.Context(), "", h.cells); err != nil {
		t.Fatal(err)
	}
	for _, c := range h.cells {
		h.stores[c.Name] = replica.Store(t, c.URL, store.Options{Cell: c.Name})
	}
	return h
}

// in returns the store of the cell.
func (h *harness) in(cell string) *store.Store { return h.stores[cell] }

// url returns the URL of the cell's database.
func (h *harness) url(cell string) string {
	for _, c := range h.cells {
		if c.Name == cell {
			return c.URL
		}
	}
	return ""
}

// number returns the number that the query gives in the cell's database.
func (h *harness) number(cell, sql string, args ...any) int64 {
	h.Helper()
	return pgtest.Number(h, pgtest.Connect(h, h.url(cell)), sql, args...)
}

// groupOf returns the n-th group whose home is the cell.
func (h *harness) groupOf(cell string, n int) string {
	h.Helper()
	for _, group := range strings.Fields("a b c d e f g h i j k l m n o p q r s t u v w x y z aa bb cc dd ee ff gg hh ii jj kk") {
		if placement.Home(group, h.in(cell).Placement().Cells) == cell {
			if n--; n < 0 {
				return group
			}
		}
	}
	h.Fatalf("too few groups are at home in %s", cell)
	return ""
}

// pin moves the groups.
func (h *harness) pin(to string, groups ...string) {
	h.Helper()
	if err := cells.Pin(h.Context(), "", h.cells, groups, to); err != nil {
		h.Fatal(err)
	}
}

// owners returns the cells that decide about the group, by their databases.
func (h *harness) owners(group string) (all []string) {
	h.Helper()
	for _, c := range h.cells {
		_, err := h.in(c.Name).Lock(h.Context(), group+":probe")
		if err == nil {
			all = append(all, c.Name)
		} else if !errors.As(err, new(*placement.ElsewhereError)) {
			h.Fatal(err)
		}
	}
	return all
}

// isIn checks that the group is in the cell and in no other, and that nothing is left of it elsewhere.
func (h *harness) isIn(cell, group string) {
	h.Helper()
	if owners := h.owners(group); len(owners) != 1 || owners[0] != cell {
		h.Errorf("the group %s is in %q, want %s", group, owners, cell)
	}
	for _, c := range h.cells {
		const rows = `select (select count(*) from paddock.records where split_part(name, ':', 1) = $1) + (select count(*) from paddock.parts where split_part(name, ':', 1) = $1)
			+ (select count(*) from paddock.fenced where split_part(key, ':', 1) = $1) + (select count(*) from paddock.fenced_operations where split_part(key, ':', 1) = $1)
			+ (select count(*) from paddock.trees where split_part(root, ':', 1) = $1) + (select count(*) from paddock.freezes where split_part(scope, ':', 1) = $1)
			+ (select count(*) from paddock.rules where split_part(scope, ':', 1) = $1)`
		if n := h.number(c.Name, rows, group); n > 0 && c.Name != cell {
			h.Errorf("the cell %s has %d rows of the group %s, which is in %s", c.Name, n, group, cell)
		}
	}
}

func acquire(name string) lock.Acquire {
	return lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID(uuid.New()), Holder: "worker", TTL: time.Minute}
}

func (h *harness) acquire(cell string, a lock.Acquire) lock.Grant {
	h.Helper()
	g, err := h.in(cell).Acquire(h.Context(), a)
	if err != nil {
		h.Fatalf("acquire %s in %s: %v", a.Locks[0].Name, cell, err)
	}
	return g
}

func (h *harness) renew(cell string, g lock.Grant) lock.Grant {
	h.Helper()
	r := lock.Renew{LeaseID: g.ID}
	for _, l := range g.Leases {
		r.Locks = append(r.Locks, l.Name)
	}
	g, err := h.in(cell).Renew(h.Context(), r)
	if err != nil {
		h.Errorf("renew %s in %s: %v", r.Locks, cell, err)
	}
	return g
}

func (h *harness) release(cell string, g lock.Grant) {
	h.Helper()
	r := lock.Release{LeaseID: g.ID}
	for _, l := range g.Leases {
		r.Locks = append(r.Locks, l.Name)
	}
	if err := h.in(cell).Release(h.Context(), r); err != nil {
		h.Errorf("release %s in %s: %v", r.Locks, cell, err)
	}
}

// history returns the ids of the events of the lock.
func (h *harness) history(cell, name string) (ids []int64) {
	h.Helper()
	page, err := h.in(cell).Events(h.Context(), paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit})
	if err != nil {
		h.Fatal(err)
	}
	for _, e := range page.Items {
		ids = append(ids, e.ID)
	}
	return ids
}
