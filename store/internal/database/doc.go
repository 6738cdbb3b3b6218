// Package database connects the store to PostgreSQL, and knows what its errors and its commits mean.
//
// # Connections
//
// A [DB] has two pools. Deciding is for the engine alone, so that nothing delays a decision. Rest is for reads, fenced
// writes and background tasks. Reads and fenced writes may use a part of it only, so that heartbeats always find a
// connection.
//
// # Commits
//
// A commit is never cancelled. On a cancel request PostgreSQL stops waiting for a standby and reports success with a
// warning; [CommitBatch] makes that an error. An error of a round trip that commits says nothing of the outcome unless
// PostgreSQL itself reports it, see [EffectOfCommit].
package database
