// Package policy knows what operators have declared about names, lock.Policy: which trees there are, which locks are
// frozen, and which rules bound requests; and, where there are several cells, which groups of locks this database has. It
// keeps a copy for decisions, and changes it in the database.
//
// All replicas must decide by the same policy. If one granted a lock by older trees than another, both could grant what
// one lease covers; if one did not know of a freeze, it would grant what an operator was told is not granted any more;
// and if one did not know that a group has left, two databases would grant its locks.
//
// # Versions
//
// The policy has a version, epoch.PolicyVersion: the number of the newest epoch, and how often the policy was changed in
// it. Both are columns of the newest row of paddock.epochs, which every look reads and every swap compares anyway, so
// the version costs a decision nothing. A [Snapshot] is the policy at one version. A [Catalog] keeps the newest Snapshot
// that this replica has read.
//
// # Decisions
//
// A decision is made for a version, and written only if that is still the version:
//
//	take the Snapshot       with it each command gets the ancestors of its locks, and the bounds of their rules
//	look    ─→ Check        is it the Snapshot of the epoch that was read? otherwise ErrChanged
//	decide
//	swap                    one comparison of sql/swap.sql: it writes nothing if the version has changed
//
// After [ErrChanged] the engine reads the policy again ([Catalog.Refresh]), and decides again by it. A Snapshot may be
// out of date when it is taken: Check finds that it does not equal the epoch that was read. So it need not be taken
// together with the epoch.Known, which only has to be taken before the epoch is read.
//
// A swap that wrote nothing reads the epoch in its next look, and so meets ErrChanged there.
//
// Two others use the policy. A fenced write locks the rows on the path of its lock, and then takes the trees of the epoch
// that it reads ([Catalog.Of]): while it has a row locked, they cannot change. Plain reads use the newest Snapshot as it
// is; it is read again within half a second of a change, although no command arrives ([Catalog.RefreshIfChanged]). Reads
// of one lock must not find that it is free because its rows have left: they compare the version before and after
// ([Catalog.ReadHere]).
//
// # Changes
//
// A change excludes all decisions while it commits:
//
//	read    without a lock: the policy, and for a tree its locks with leases or waiters. Nothing more is done if all is
//	        as wanted, or if the change is refused: a tree has a lock in use, or there are too many freezes or rules
//	change  one transaction of one round trip: locks paddock.records, which waits for decisions that are being written
//	        and holds up others; compares the version, and for a tree that none of its locks is in use; counts the
//	        change; commits
//
// So the change sees what every earlier decision has written, and every later decision sees the change, or finds
// another version and writes nothing. It takes effect for all replicas at one instant, also for one that is stopped
// meanwhile and writes when it goes on.
//
// Decisions queue behind a change that waits for the table. Therefore a change gives up after a few milliseconds, rests
// ten times as long as that took, and is tried again, eight times in all. Then the caller is told to come back.
//
// A change may let waiters in. So each replica wakes its own waiters in the scope when it reads the policy.
//
// Commands of operators change the placement of groups, without a Catalog ([ChangePlacement]). They may have moved rows in
// the same transaction before, which wait for no decision.
//
// # A new epoch
//
// A new epoch starts with zero changes, and a greater number. So no version is used twice: after a restore, a Snapshot
// with trees that the database has lost is of no later epoch.
package policy
