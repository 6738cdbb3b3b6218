package paddock

import (
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock/lock"
)

// A Mark is a place in a list of events: after the events up to an id. In a list of the events of several cells it is a
// place in each of them, by the position of the cell. Its text is the cursor of a page, 4711 or 00-4711.02-815, of some
// 1,500 bytes at most. A Mark is never changed. The zero Mark is before all events.
type Mark struct{ at []placeInCell }

type placeInCell struct {
	cell int // noCell in a list that is not of several cells
	id   int64
}

const noCell = -1

// Places in a cell that are not after an event.
const (
	MarkNow  int64 = -1 // the cell was away when the list began with CursorNow
	MarkOver int64 = -2 // its list has ended
)

var markTexts = map[int64]string{MarkNow: "n", MarkOver: "e"}

// ParseMark returns the Mark of a cursor, the zero Mark for the beginning and for CursorNow, or an ErrInvalid error.
func ParseMark(cursor string) (Mark, error) {
	if cursor == "" || cursor == "0" || cursor == CursorNow {
		return Mark{}, nil
	}
	var m Mark
	for part := range strings.SplitSeq(cursor, ".") {
		cell, text, several := strings.Cut(part, "-")
		at := placeInCell{cell: noCell}
		var err error
		if several {
			at.cell, err = strconv.Atoi(cell)
		} else {
			text = cell
		}
		if _, bad := strconv.ParseUint(text, 10, 63); err == nil && bad == nil {
			at.id, err = strconv.ParseInt(text, 10, 64)
		} else if at.id = specialMark(text); at.id == 0 || !several {
			err = strconv.ErrSyntax
		}
		if err != nil || at.cell >= lock.MaxCells || len(m.at) > 0 && (m.at[0].cell == noCell || m.at[len(m.at)-1].cell >= at.cell) {
			return Mark{}, lock.Invalid("cursor", "is invalid; pass next_cursor unchanged, the id of an event, or now, or omit it to start over")
		}
		m.at = append(m.at, at)
	}
	return m, nil
}

func specialMark(text string) int64 {
	for id, t := range markTexts {
		if t == text {
			return id
		}
	}
	return 0
}

// String returns the cursor.
func (m Mark) String() string {
	var text strings.Builder
	for i, p := range m.at {
		if i > 0 {
			text.WriteByte('.')
		}
		if p.cell != noCell {
			if p.cell < 10 {
				text.WriteByte('0')
			}
			text.WriteString(strconv.Itoa(p.cell) + "-")
		}
		if special, found := markTexts[p.id]; found {
			text.WriteString(special)
		} else {
			text.WriteString(strconv.FormatInt(p.id, 10))
		}
	}
	if len(m.at) == 0 {
		return "0"
	}
	return text.String()
}

// OfCells reports whether the Mark is one of several cells.
func (m Mark) OfCells() bool { return len(m.at) > 0 && m.at[0].cell != noCell }

// Start returns a Mark of the same cells before all events.
func (m Mark) Start() Mark {
	start := Mark{slices.Clone(m.at)}
	for i := range start.at {
		start.at[i].id = 0
	}
	return start
}

// In returns the place in the cell at the position, false if the Mark has none: before all events.
func (m Mark) In(cell int) (id int64, found bool) {
	i, found := m.find(cell)
	if !found {
		return 0, false
	}
	return m.at[i].id, true
}

func (m Mark) find(cell int) (int, bool) {
	return slices.BinarySearchFunc(m.at, cell, func(p placeInCell, cell int) int { return p.cell - cell })
}

// With returns m with another place in the cell at the position.
func (m Mark) With(cell int, id int64) Mark {
	i, found := m.find(cell)
	after := Mark{slices.Clone(m.at)}
	if found {
		after.at[i].id = id
	} else {
		after.at = slices.Insert(after.at, i, placeInCell{cell, id})
	}
	return after
}

// cellOf returns where the place of the event is.
func (m Mark) cellOf(e *lock.Event) int {
	if m.OfCells() {
		return e.Cell
	}
	return noCell
}

// Has reports whether the event is before the Mark.
func (m Mark) Has(e *lock.Event) bool {
	id, found := m.In(m.cellOf(e))
	return found && e.ID <= id
}

// After returns the Mark after the event, and whatever m is after.
func (m Mark) After(e *lock.Event) Mark { return m.With(m.cellOf(e), e.ID) }

// Join returns the Mark after all events that one of both is after.
func (m Mark) Join(o Mark) Mark {
	for _, p := range o.at {
		if id, found := m.In(p.cell); !found || id < p.id {
			m = m.With(p.cell, p.id)
		}
	}
	return m
}

// Covers reports whether m is after all events that o is after.
func (m Mark) Covers(o Mark) bool {
	return !slices.ContainsFunc(o.at, func(p placeInCell) bool {
		id, found := m.In(p.cell)
		return p.id > 0 && (!found || id < p.id)
	})
}
