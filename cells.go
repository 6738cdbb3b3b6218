package paddock

// A Cell is one of the databases of a service that has several, see package cell.
type Cell struct {
	Name     string
	Position int  // from 0 on; its event ids and tokens are told from those of others by it
	Takes    bool // it is the home of groups that no operator has moved
	// Away is why the cell cannot be used at present, empty while it can.
	Away  string
	Epoch int64 // of its database; zero while it is away since the start
	// Groups are the groups that were moved to the cell, in order.
	Groups []CellGroup
}

// A CellGroup is a group that an operator has moved to a cell.
type CellGroup struct {
	Name   string
	Moving bool // it is not there yet, and no cell decides about it
}
