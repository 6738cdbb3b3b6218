// Package database connects the store to PostgreSQL, and knows what its errors and its commits mean.
//
// # Connections
//
// A [DB] has two pools. Deciding is for the engine alone, so that nothing delays a decision. Rest is for reads, fenced
// writes, changes of sessions and background tasks. The first three may use a part of it only, so that the heartbeats
// of the replica always find a connection; and the first two a part of that, so that those of sessions do.
//
// # Commits
//
// A commit is never cancelled. On a cancel request PostgreSQL stops waiting for a standby and reports success with a
// warning; [CommitBatch] makes that an error. An error of a round trip that commits says nothing of the outcome unless
// PostgreSQL itself reports it, see [EffectOfCommit].
package database
