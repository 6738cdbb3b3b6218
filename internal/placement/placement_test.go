package placement_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

func TestTheGroupIsTheNameUpToItsFirstColon(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"billing": "billing", "billing:": "billing", "billing:eu": "billing", "billing:eu:x": "billing", ":x": "", "": "",
	} {
		if got := placement.Group(name); got != want {
			t.Errorf("Group(%q) = %q, want %q", name, got, want)
		}
	}
}

// cells returns cells with these names; those that begin with a dash do not take.
func cells(names ...string) (all []placement.Cell) {
	for i, name := range names {
		c := placement.Cell{Name: name, Position: i, Takes: name[0] != '-'}
		if !c.Takes {
			c.Name = name[1:]
		}
		all = append(all, c)
	}
	return all
}

func TestACellThatIsAddedTakesGroupsFromAllOthersAndMovesNoOther(t *testing.T) {
	t.Parallel()
	const groups = 30_000
	three, four := cells("a", "b", "c"), cells("a", "b", "c", "d")
	of, moved := map[string]int{}, map[string]int{}
	for i := range groups {
		group := fmt.Sprintf("team-%d", i)
		before, after := placement.Home(group, three), placement.Home(group, four)
		of[before]++
		if after == before {
			continue
		}
		if moved[before]++; after != "d" {
			t.Fatalf("%s moved from %s to %s when d was added", group, before, after)
		}
	}
	for _, c := range three {
		if n := of[c.Name]; n < groups*31/100 || n > groups*36/100 {
			t.Errorf("%s is the home of %d of %d groups", c.Name, n, groups)
		}
		if n := moved[c.Name]; n < groups*7/100 || n > groups*10/100 {
			t.Errorf("d took %d of %d groups from %s", n, groups, c.Name)
		}
	}
}

func TestTheHomeIsACellThatTakesAndNeverChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		group string
		cells []placement.Cell
		want  string
	}{
		{"billing", nil, ""},
		{"billing", cells("-a", "-b"), ""},
		{"billing", cells("a"), "a"},
		{"billing", cells("-a", "b", "-c"), "b"},
		// A replica of another release must find the same homes.
		{"billing", cells("main", "spare", "third"), "main"},
		{"orders", cells("main", "spare", "third"), "third"},
		{"", cells("main", "spare", "third"), "spare"},
	} {
		if got := placement.Home(c.group, c.cells); got != c.want {
			t.Errorf("Home(%q, %v) = %q, want %q", c.group, c.cells, got, c.want)
		}
	}
}

// withRow returns the Map of the cell main, beside spare, with a row of the group billing.
func withRow(cell string, state placement.State) *placement.Map {
	return &placement.Map{
		Self: "main", Cells: cells("main", "-spare"), Generation: 3,
		Rows: map[string]placement.Row{"billing": {Group: "billing", Cell: cell, Generation: 7, State: state}},
	}
}

func TestADatabaseHasAGroupIfItsOwnMapSaysSo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in    *placement.Map
		names []string
		want  *placement.ElsewhereError
	}{
		"without cells":        {&placement.Map{}, []string{"billing:x"}, nil},
		"at home":              {&placement.Map{Self: "main", Cells: cells("main", "-spare")}, []string{"billing:x", "orders"}, nil},
		"at another's home":    {&placement.Map{Self: "main", Cells: cells("-main", "spare")}, []string{"billing:x"}, &placement.ElsewhereError{Group: "billing", Cell: "spare"}},
		"no cell takes":        {&placement.Map{Self: "main", Cells: cells("-main")}, []string{"billing"}, &placement.ElsewhereError{Group: "billing"}},
		"moved in":             {withRow("main", placement.Here), []string{"billing:x"}, nil},
		"leaving":              {withRow("spare", placement.Leaving), []string{"billing:x"}, &placement.ElsewhereError{Group: "billing", Cell: "spare", Leaving: true}},
		"gone":                 {withRow("spare", placement.Gone), []string{"billing:x"}, &placement.ElsewhereError{Group: "billing", Cell: "spare"}},
		"never came":           {withRow("spare", placement.Refused), []string{"billing:x"}, &placement.ElsewhereError{Group: "billing", Cell: "spare"}},
		"another group":        {withRow("spare", placement.Gone), []string{"billings:x"}, nil},
		"one of several names": {withRow("spare", placement.Gone), []string{"orders:1", "orders:2", "billing:x"}, &placement.ElsewhereError{Group: "billing", Cell: "spare"}},
		"no name":              {withRow("spare", placement.Gone), nil, nil},
	} {
		err := c.in.Elsewhere(c.names...)
		got := (*placement.ElsewhereError)(nil)
		if errors.As(err, &got) != (c.want != nil) || c.want != nil && *got != *c.want {
			t.Errorf("%s: Elsewhere(%q) = %v, want %v", name, c.names, err, c.want)
		}
	}
}

func TestWhoeverKnowsNoCellsIsToldToRetry(t *testing.T) {
	t.Parallel()
	for _, e := range []placement.ElsewhereError{{Group: "billing", Cell: "spare"}, {Group: "billing", Cell: "spare", Leaving: true}, {Group: "billing"}} {
		answer := (*lock.Error)(nil)
		if err := error(&e); !errors.As(err, &answer) || answer.Code != lock.ErrUnavailable || answer.RetryAfter <= 0 {
			t.Errorf("%+v is %v", e, err)
		}
	}
}

func TestGenerationOfAGroupIsNeverLessThanThatOfTheSetOfCells(t *testing.T) {
	t.Parallel()
	m := withRow("spare", placement.Gone)
	if row, home := m.GenerationOf("billing"), m.GenerationOf("orders"); row != 7 || home != 3 {
		t.Errorf("generations %d and %d, want 7 and 3", row, home)
	}
	if m.Generation = 9; m.GenerationOf("billing") != 9 {
		t.Error("the row is older than the set of cells, and its generation counts all the same")
	}
}

func TestTheRouteIsThatOfTheNewestRowOrElseOfTheNewestSet(t *testing.T) {
	t.Parallel()
	at := func(generation int64, group, cell string, row int64) *placement.Map {
		m := &placement.Map{Self: "x", Cells: cells("main", "-spare"), Generation: generation}
		if group != "" {
			m.Rows = map[string]placement.Row{group: {Group: group, Cell: cell, Generation: row}}
		}
		return m
	}
	other := at(5, "", "", 0)
	other.Cells = cells("-main", "spare")
	for name, c := range map[string]struct {
		maps []*placement.Map
		want string
	}{
		"none is known":                     {nil, ""},
		"the cells are away":                {[]*placement.Map{nil, nil}, ""},
		"home":                              {[]*placement.Map{at(1, "", "", 0), nil}, "main"},
		"home by the newest set":            {[]*placement.Map{other, at(4, "", "", 0)}, "spare"},
		"a row":                             {[]*placement.Map{at(1, "", "", 0), at(1, "billing", "spare", 2)}, "spare"},
		"a row of another group":            {[]*placement.Map{at(1, "orders", "spare", 2)}, "main"},
		"the newest of two rows":            {[]*placement.Map{at(1, "billing", "spare", 2), at(1, "billing", "main", 3)}, "main"},
		"a row, and a newer set":            {[]*placement.Map{at(1, "billing", "main", 2), other}, "main"},
		"the newest set is known to a cell": {[]*placement.Map{nil, other, nil}, "spare"},
	} {
		if got := placement.Route("billing", c.maps...); got != c.want {
			t.Errorf("%s: Route = %q, want %q", name, got, c.want)
		}
	}
	if got := at(1, "billing", "spare", 2).CellOf("billing"); got != "spare" {
		t.Errorf("CellOf a group with a row = %q", got)
	}
	if got := at(1, "billing", "spare", 2).CellOf("orders"); got != "main" {
		t.Errorf("CellOf a group without a row = %q", got)
	}
}

func TestNamesOfCells(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"main": true, "eu-1": true, "1": true, "a": true, "": false, "-a": false, "a-": false, "Main": false, "a:b": false, "a_b": false, "a=b": false,
		"0123456789012345678901234567890123456789": true, "01234567890123456789012345678901234567890": false,
	} {
		if err := placement.CheckCell(name); (err == nil) != good {
			t.Errorf("CheckCell(%q) = %v", name, err)
		}
	}
}
