// Package migrations contains the schema of Paddock's tables as numbered pairs of SQL files, and migrates databases.
//
// # Files
//
// The files are NNNN_name.up.sql and NNNN_name.down.sql, numbered from 0001 without gaps. The statements of a
// released file never change. Every name is qualified with the schema paddock, which Up creates. Each file runs as
// one transaction, so it contains no begin, no commit, and no statement that PostgreSQL refuses inside a transaction.
//
// # The previous release
//
// Replicas restart in any order, so a migration is applied while replicas of the previous release run. Each of their
// calls must be answered correctly or refused, never wrongly. A migration that adds to the schema lets them go on
// deciding. One that moves data must make the database refuse their statements with SQLSTATE 57P03 and a message that
// says what to do: they log it, and answer 503 with Retry-After until the new release serves. What they committed
// before stays valid: leases, tokens, waiters and the ids of events; and Down brings it back. CHANGELOG.md and
// docs/operations.md say which kind a migration is.
//
// Versions 5 and 6 refuse replicas of schema 4. Their statements are kept in internal/testkit/schema4, because tests
// cannot build that release from a clone without history.
//
// # Migrating
//
// The table paddock.schema_migrations has the version of a database. Any number of replicas may call Up at
// the same time: one migrates, the others wait. A migration and its version commit together. So one that PostgreSQL
// refuses, or whose connection or process dies, leaves nothing behind, and the next Up or Down continues.
//
// A schema never goes back automatically. A binary that finds a newer schema returns a NewerError and changes
// nothing.
//
// Up and Down need a direct connection, and a role with the right to create in the database. Through a pooler in
// transaction mode they return a poolmode.Error and change nothing. On a server older than PostgreSQL 14, Up, Down
// and Version return a pgversion.TooOldError.
package migrations
