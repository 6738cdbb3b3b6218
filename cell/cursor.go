package cell

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A cursor is where a list of events of several cells goes on: in each cell, by its position, after a cursor of the cell.
// A cell that it lacks begins like the list. As text it is 0-4711.2-815, which is at most some 1,500 bytes.
type cursor map[int]string

// Marks of a cell in a cursor, in place of an event's id.
const (
	markNow  = "n" // it was away when the list began with paddock.CursorNow
	markOver = "e" // its list has ended
)

// parseCursor returns the cursor of a page of several cells; empty for the beginning, and for paddock.CursorNow.
func parseCursor(text string) (cursor, error) {
	c := cursor{}
	if text == "" || text == "0" || text == paddock.CursorNow {
		return c, nil
	}
	for part := range strings.SplitSeq(text, ".") {
		position, id, ok := strings.Cut(part, "-")
		n, err := strconv.Atoi(position)
		if _, bad := strconv.ParseUint(id, 10, 63); bad != nil && id != markNow && id != markOver {
			ok = false
		}
		if err != nil || !ok || n < 0 || c[n] != "" {
			return nil, lock.Invalid("cursor", "is invalid for events of several cells; pass next_cursor unchanged, or now, or omit it to start over")
		}
		c[n] = id
	}
	return c, nil
}

// String returns the cursor as text.
func (c cursor) String() string {
	var parts []string
	for position, id := range c {
		parts = append(parts, fmt.Sprintf("%02d-%s", position, id))
	}
	slices.Sort(parts)
	return strings.Join(parts, ".")
}

// of returns the cursor for the cell at the position, in a list that begins at begin. over reports that its list has ended.
func (c cursor) of(position int, begin string) (at string, over bool) {
	switch id := c[position]; id {
	case "":
		if begin != paddock.CursorNow {
			begin = ""
		}
		return begin, false
	case markNow:
		return paddock.CursorNow, false
	case markOver:
		return "", true
	default:
		return id, false
	}
}
