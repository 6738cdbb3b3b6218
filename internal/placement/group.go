package placement

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
)

// Step is by how much the ids of event batches grow in a cell: an id is the position of its cell modulo Step. So ids and
// tokens of several cells never meet.
const Step = 64

// Group returns the group of a lock, a scope, or the key of a fenced value: its name up to the first colon.
func Group(name string) string {
	group, _, _ := strings.Cut(name, ":")
	return group
}

// A Cell is a database among several.
type Cell struct {
	Name     string
	Position int  // from 0 to lock.MaxCells-1
	Takes    bool // it is the home of groups
}

var cellName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// CheckCell returns an error unless the name is one of a cell: 1 to 40 of a-z, 0-9 and -, which neither begins nor ends
// with a dash.
func CheckCell(name string) error {
	if !cellName.MatchString(name) {
		return fmt.Errorf("the cell %q: a cell's name is 1 to 40 of a-z, 0-9 and -, and neither begins nor ends with -", name)
	}
	return nil
}

// Home returns the cell that is the home of the group: of the cells that take, the one with the greatest hash of its
// name and the group's. So when a cell is added or removed, only its own groups have another home. It is empty if no
// cell takes.
func Home(group string, cells []Cell) (home string) {
	greatest := uint64(0)
	for i := range cells {
		if c := &cells[i]; c.Takes {
			if w := weight(c.Name, group); home == "" || w > greatest || w == greatest && c.Name < home {
				home, greatest = c.Name, w
			}
		}
	}
	return home
}

// weight returns a hash of both names: FNV-1a, whose bits are then mixed, since the last characters change few of them.
func weight(cell, group string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(cell + ":" + group)) // it never fails; no cell has a colon
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
