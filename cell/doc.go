// Package cell is the router of a service that has several databases. Each is a cell: a PostgreSQL, mostly with
// standbys, which has its own tokens, clock, epochs and events, and keeps every promise for its own locks. A [Router]
// is a paddock.Service in front of the Services of the cells. With one database there is no router.
//
// A group is the locks with the same name up to its first colon. It is in one cell, and so are its trees, freezes and
// rules, and the keys of fenced values with that name. Each cell knows which groups it has and refuses the calls for
// all others, see package placement. So the router keeps nothing that must be right: it only finds the cell to ask.
//
// # What each call does
//
//	call                               where
//	about one name, scope, root, key   in the cell of its group; it follows one that has moved, and waits while it moves
//	about a set of locks               in the cell of all of them; refused if there are several: ErrInvalid names them
//	Batch                              split by cell; each part is a batch there
//	WriteFenced                        in the cell of the key, which must have the lock, too: otherwise refused
//	OpenSession                        registered at its home, by a hash of its name; in another cell if that is away
//	Acquire in a session               opens the session in the cell of the lock at its first use there
//	RenewSession                       in all cells that use the session; the answer is the earliest end
//	CloseSession, RevokeSession        in all cells that know the session
//	Session, Sessions                  one for all cells: its leases and places, the earliest end
//	Locks                              merged in the order of names; the cursor is a name
//	Trees, Freezes, Rules              merged in their order
//	Events of one lock                 in the cell of its group, which has its whole history
//	other Events                       merged by time; the cursor has a position for each cell
//
// # A cell that is away
//
// Calls for its groups fail with ErrUnavailable, which names the cell. Lists leave out its locks, sessions and events,
// and say so in Unreadable, or in time: a call that waits for events goes on without it. For Trees,
// Freezes and Rules, its last answer is used. A session with leases in the cell cannot be renewed meanwhile, so those
// may end. No other call waits for the cell.
//
// # Sessions
//
// The row of a session in each cell says in which cells the session is used, see lock.CellSet. Before a cell is used
// first, its bit is set in all rows of the cells that are used already, or in the row where the session is registered.
// So each row of a cell that is used has all of them: a renewal that finds one finds all, or fails, and is never told
// that the session is alive while a cell that it could not ask lets it end.
//
// # Not promised
//
//   - Tokens of different cells are unique, but not ordered. Locks that guard one resource must be in one group.
//   - Calls that wait for each other in a circle over several cells are not found. They end with their time-outs.
//   - Instants are of the clock of the cell.
//   - Events of different cells are in the order in which they were read, mostly that of their times.
package cell
