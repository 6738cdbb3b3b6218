package cell_test

import (
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/cell"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// databases registers n new databases as cells.
func databases(t testing.TB, n int) (all []store.CellDatabase) {
	t.Helper()
	for _, name := range []string{"main", "spare", "third", "fourth"}[:n] {
		all = append(all, store.CellDatabase{Name: name, URL: pgtest.URL(t)})
	}
	if err := store.RegisterCells(t.Context(), "", all); err != nil {
		t.Fatal(err)
	}
	return all
}

// over returns a router over stores on the databases.
func over(t testing.TB, all []store.CellDatabase) *cell.Router {
	t.Helper()
	var names []string
	for _, c := range all {
		names = append(names, c.Name)
	}
	r := cell.New(names...)
	for _, c := range all {
		r.Set(c.Name, replica.Store(t, c.URL, store.Options{Cell: c.Name}))
	}
	return r
}

// TestDatabasesConform uses two routers over the same three databases: each call goes to either one.
func TestDatabasesConform(t *testing.T) {
	t.Parallel()
	all := databases(t, 3)
	locktest.Run(t, []paddock.Service{over(t, all), over(t, all)}...)
}
