package placement

// A State is what a database says of a group.
type State string

// The states. A group without a row is at its home.
const (
	Here    State = "here"    // it decides about the group
	Leaving State = "leaving" // the group is on its way to another cell, and is decided about in none
	Gone    State = "gone"    // the group is in another cell
	Refused State = "refused" // a move of the group to this cell was given up; it is in another one
)

// A Row says where a group is.
type Row struct {
	Group      string
	Cell       string // that has it, or that it moves to
	Generation int64
	State      State
	Pinned     bool // an operator has chosen the cell
}

// A Map is what the database of a cell says of the cells and groups. It is shared and never changed. The zero Map is
// that of a database without cells, which has all groups.
type Map struct {
	Self       string // the cell
	Cells      []Cell // in the order of their positions
	Generation int64  // of the set of cells
	Rows       map[string]Row
}

// CellOf returns the cell that has the group, or that it moves to, as far as the Map tells.
func (m *Map) CellOf(group string) string {
	if r, found := m.Rows[group]; found {
		return r.Cell
	}
	return Home(group, m.Cells)
}

// GenerationOf returns the generation of what the Map says of the group: that of its row or of the set of cells, whichever
// is greater.
func (m *Map) GenerationOf(group string) int64 { return max(m.Rows[group].Generation, m.Generation) }

// Elsewhere returns an *ElsewhereError for the first of the names whose group this database does not have; nil if it
// has all of them.
func (m *Map) Elsewhere(names ...string) error {
	if m.Self == "" {
		return nil
	}
	last := ""
	for i, name := range names {
		group := Group(name)
		if i > 0 && group == last {
			continue
		}
		last = group
		r, moved := m.Rows[group]
		if !moved {
			r = Row{Cell: Home(group, m.Cells), State: Gone}
			if r.Cell == m.Self {
				r.State = Here
			}
		}
		if r.State != Here {
			return &ElsewhereError{Group: group, Cell: r.Cell, Leaving: r.State == Leaving}
		}
	}
	return nil
}

// Route returns the cell to ask about the group: the one that the newest row among the Maps names, or else the home by
// the newest set of cells. Maps that are nil do not count. It is empty without any.
func Route(group string, maps ...*Map) (cell string) {
	newest, set := int64(-1), &Map{Generation: -1}
	for _, m := range maps {
		if m == nil {
			continue
		}
		if m.Generation > set.Generation {
			set = m
		}
		if r, found := m.Rows[group]; found && r.Generation > newest {
			cell, newest = r.Cell, r.Generation
		}
	}
	if newest < 0 {
		return Home(group, set.Cells)
	}
	return cell
}
