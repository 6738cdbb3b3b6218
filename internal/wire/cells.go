package wire

import (
	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/api"
)

// CellListOf returns the model of the cells.
func CellListOf(all []paddock.Cell) api.CellList {
	list := api.CellList{Cells: make([]api.Cell, len(all))}
	for i, c := range all {
		list.Cells[i] = api.Cell{
			Name: c.Name, Position: c.Position, Takes: c.Takes, Away: UnlessZero(c.Away), Epoch: UnlessZero(c.Epoch),
			Groups: make([]api.CellGroup, len(c.Groups)),
		}
		for n, g := range c.Groups {
			list.Cells[i].Groups[n] = api.CellGroup{Name: g.Name, Moving: g.Moving}
		}
	}
	return list
}

// ToCellList returns the cells.
func ToCellList(l api.CellList) []paddock.Cell {
	all := make([]paddock.Cell, len(l.Cells))
	for i, c := range l.Cells {
		all[i] = paddock.Cell{Name: c.Name, Position: c.Position, Takes: c.Takes, Away: ValueOf(c.Away), Epoch: ValueOf(c.Epoch)}
		for _, g := range c.Groups {
			all[i].Groups = append(all[i].Groups, paddock.CellGroup{Name: g.Name, Moving: g.Moving})
		}
	}
	return all
}
