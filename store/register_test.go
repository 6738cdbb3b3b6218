package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/store"
)

// cellsOf returns the rows of the cells, in the order of their positions.
func cellsOf(t *testing.T, url string) string {
	t.Helper()
	rows, err := connect(t, url).Query(t.Context(), `select concat_ws(' ', name, position, case when takes then 'takes' end,
		case when self then 'self' end, generation) from paddock.cells order by position`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, ", ")
}

func TestEmptyDatabasesAllTakeGroups(t *testing.T) {
	t.Parallel()
	main, spare := twoCells(t)
	for range 2 { // the second time nothing is to be done
		register(t, spare, main)
		for url, want := range map[string]string{
			main.URL: "main 0 takes self 1, spare 1 takes 1", spare.URL: "main 0 takes 1, spare 1 takes self 1",
		} {
			if got := cellsOf(t, url); got != want {
				t.Errorf("registered %q, want %q", got, want)
			}
		}
	}
}

// TestADeploymentBecomesTheFirstCell registers a database with locks, while a replica serves it that knows no cells.
func TestADeploymentBecomesTheFirstCell(t *testing.T) {
	t.Parallel()
	main, spare := store.CellDatabase{Name: "main", URL: pgtest.URL(t)}, store.CellDatabase{Name: "spare", URL: pgtest.URL(t)}
	s := open(t, main.URL)
	before := mustAcquire(t, s, acquire("billing:x"))
	register(t, spare, main)
	if got := cellsOf(t, spare.URL); got != "spare 0 self 1, main 1 takes 1" {
		t.Errorf("registered %q", got)
	}
	after := mustAcquire(t, s, acquire("billing:y"))
	if after.Token <= before.Token || int(after.Token)/256%64 != 1 {
		t.Errorf("the token %d followed %d", after.Token, before.Token)
	}
	if epochs, _, err := store.Epochs(t.Context(), main.URL, ""); err != nil || len(epochs) != 1 {
		t.Errorf("%d epochs, %v: the sequence seemed to go back", len(epochs), err)
	}
	for i := range 40 {
		mustRelease(t, s, mustAcquire(t, s, acquire(fmt.Sprintf("group%d", i))))
	}
}

func TestAThirdCellTakesNothing(t *testing.T) {
	t.Parallel()
	main, spare := twoCells(t)
	mustAcquire(t, cell(t, main), acquire(homeIn(t, cell(t, main), "main")))
	third := store.CellDatabase{Name: "third", URL: pgtest.URL(t)}
	register(t, main, third, spare)
	for url, want := range map[string]string{
		main.URL:  "main 0 takes self 2, spare 1 takes 2, third 2 2",
		third.URL: "main 0 takes 2, spare 1 takes 2, third 2 self 2",
	} {
		if got := cellsOf(t, url); got != want {
			t.Errorf("registered %q, want %q", got, want)
		}
	}
}

// TestARegistrationThatStoppedIsFinished leaves out the second database, as a process that dies does.
func TestARegistrationThatStoppedIsFinished(t *testing.T) {
	t.Parallel()
	main, spare := twoCells(t)
	exec(t, connect(t, spare.URL), "delete from paddock.cells")
	mustAcquire(t, cell(t, main), acquire(homeIn(t, cell(t, main), "main")))
	register(t, main, spare)
	if got := cellsOf(t, spare.URL); got != "main 0 takes 2, spare 1 takes self 2" {
		t.Errorf("registered %q", got)
	}
}

func TestWhatCannotBeRegistered(t *testing.T) {
	t.Parallel()
	main, spare := twoCells(t)
	named := func(name, url string) store.CellDatabase { return store.CellDatabase{Name: name, URL: url} }
	busy, busier := pgtest.URL(t), pgtest.URL(t)
	mustAcquire(t, open(t, busy), acquire("x"))
	mustAcquire(t, open(t, busier), acquire("x"))
	fresh := pgtest.URL(t)
	otherMain, otherSpare := pgtest.URL(t), pgtest.URL(t)
	register(t, named("spare", otherSpare), named("main", otherMain))
	for what, c := range map[string]struct {
		cells []store.CellDatabase
		want  string
	}{
		"swapped URLs":         {[]store.CellDatabase{named("main", spare.URL), named("spare", main.URL)}, "its database is registered as the cell spare"},
		"one cell left out":    {[]store.CellDatabase{main}, "the cell spare is registered, too"},
		"two with locks":       {[]store.CellDatabase{named("a", busy), named("b", busier)}, "the databases of the cells a, b have locks"},
		"a later one in use":   {[]store.CellDatabase{main, spare, named("c", busy)}, "the databases of the cells c have locks"},
		"one database twice":   {[]store.CellDatabase{named("a", fresh), named("b", fresh)}, "its database is registered as the cell a"},
		"two deployments":      {[]store.CellDatabase{main, named("spare", otherSpare)}, "two positions"},
		"a name that is none":  {[]store.CellDatabase{named("a:b", pgtest.URL(t))}, `the cell "a:b"`},
		"another one's schema": {[]store.CellDatabase{named("a", pgtest.EmptyURL(t))}, "the cell a: "},
	} {
		if err := store.RegisterCells(t.Context(), "", c.cells); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}
