// Package placement says which cell has which locks. It is pure: it reads and writes nothing.
//
// # Terms
//
//	cell        one database among several behind one deployment
//	position    the number of a cell, from 0 to 62; it never changes. Event ids and tokens of a cell are drawn with it
//	group       the locks, scopes and keys of fenced values with the same name up to its first colon
//	takes       whether a cell is the home of groups
//	home        the cell in which a group is unless a row says otherwise, by a hash of its name over the cells that take
//	row         says in which cell a group is, and since which generation
//	generation  orders what is known of a group, or of the set of cells: the greater one is newer
//
// # One owner
//
// Each database has a [Map] of its own: its cells, and the rows of groups that were moved. It decides about a group only
// if its own Map says that the group is here, see [Map.Elsewhere]:
//
//	its row of the group     decides
//	here                     yes
//	leaving                  no: the group is on its way to the row's cell
//	gone, refused            no: the group is in the row's cell
//	none                     if it is the home
//
// Maps change one after another, so those of two cells may differ: then neither has the group, and never both. [Route]
// finds a group from the Maps of several cells.
//
// A Map is a part of the policy of its database, so it is compared with each decision, see package policy.
package placement
