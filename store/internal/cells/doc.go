// Package cells registers databases as the cells of one deployment, and moves groups of locks between them. It works on
// connections of its own, like the commands of operators that call it.
//
// # Registration
//
// Each database has a table of all cells, see package placement: the same in all, but for the mark that says which one
// it is itself. Register writes them one after another, and finishes when it is run again. A new cell is the home of no
// group, so the tables may differ meanwhile.
//
// # Moves
//
// A move takes groups from a source to a target. It has a generation, greater than what either knows of the groups. Each
// change of a placement excludes decisions and is counted, see policy.ChangePlacement, so no decision that was made before
// it is written after it.
//
//	step      what is done                                                       killed after it
//	copied    the history so far is in the target                                the source decides
//	left      source: the row (target, generation, leaving)                      none decides, until the command is run again
//	carried   target: one transaction with everything of the groups, and the     the target decides; calls that reach the
//	          row (target, generation, here). Its commit is the switch           source are sent to it
//	finished  source: the row (target, generation, gone), and what it had of     all is done
//	          the groups is deleted, but for the history
//
// The same command goes on from there. The target takes the groups only if it knows of no generation as great, so a command
// that was stopped and goes on later moves nothing twice: after a later move, or after the move was given up. To give up is
// to let the target say (source, generation, refused) first, and then the source (source, generation + 1, here).
//
// Nothing of the groups changes at the source once they have left, so it is copied as it is. In the target it gets that
// database's clock as after a fail-over, see epoch.Names: each lease has its whole TTL, and what was over stays over; waiters
// keep their order, and count as present for lock.ReplicaTTL. Tokens and events of the target continue above those of the
// source, since both are excluded while its sequence is raised.
//
// # Turns
//
// A step waits for its turn, deployment.turn at most: for other commands, for an instant without a decision
// (policy.ChangePlacement), and for sessions that heartbeats have locked. Calls wait for each attempt at the latter two, so
// attempts are short, and none is made for ten times as long after one. A move that gives up before the groups leave has
// changed nothing; later, it gives the move up, or tells that the same command finishes it.
//
// # Sessions
//
// A session may have leases in several groups, so it stays at the source as well, where heartbeats go on. In the target it
// has its whole TTL from an instant at which no heartbeat can be decided: one that did not find the session there came
// before, so its holder was told no later end. What has ended in either database has ended in both. If a session is closed
// while its leases are in neither cell, the last step ends it in the target before it deletes them at the source.
//
// # The set of cells
//
// To drain or fill a cell changes the homes of many groups. Those that have anything move first. Then the set is written, first
// into the databases that have fewer homes from then on, each of which checks, while nothing is decided, that it has nothing
// of a group that has another home: so no two databases are the home of one group. Rows that say of a group what its home
// says are dropped, and the generation of the set is above theirs.
//
// # What is not promised
//
//   - A fail-over that loses the row leaving makes a source decide again, until a replica that reaches both cells writes it
//     again: see cell.Router.RemindCells. One that loses the row here leaves the group in no cell, until the command is run
//     again. With a quorum nothing is lost.
//   - A set of locks of several groups moves only if all of these move together.
package cells
