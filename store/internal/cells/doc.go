// Package cells registers databases as the cells of one deployment.
//
// Each database has a table of all cells, see package placement: the same in all, but for the mark that says which one
// it is itself. Register writes them one after another, and finishes when it is run again. A new cell is the home of no
// group, so the tables may differ meanwhile.
package cells
