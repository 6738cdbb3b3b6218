// Package migrations contains the schema of Paddock's tables as numbered pairs of SQL files, and migrates databases.
//
// # Files
//
// The files are NNNN_name.up.sql and NNNN_name.down.sql, numbered from 0001 without gaps. The statements of a
// released file never change. Every name is qualified with the schema paddock; Up creates the schema, and puts its
// name where a file has the word paddock. Each file runs as one transaction, so it contains no begin, no commit, and
// no statement that PostgreSQL refuses inside a transaction.
//
// # The previous release
//
// Replicas restart in any order, so a migration is applied while replicas of the previous release run. Each of their
// calls must be answered correctly or refused, never wrongly. A migration that adds to the schema lets them go on
// deciding. One that moves data, or gives it another meaning, must make their statements fail: it renames the tables
// that they use. A replica whose statement fails, and that finds a schema newer than its own, answers 503 with
// Retry-After, logs that the new release must be started in its place, and is not ready. What it committed before
// stays valid: leases, tokens, waiters and the ids of events; and Down brings it back. CHANGELOG.md says which kind a
// migration is.
//
// # Locks on tables
//
// A statement such as alter table waits until no transaction uses the table, a pg_dump for example, and meanwhile
// decisions queue behind it. So a migration locks its tables first, in a loop of a do block: set lock_timeout to 100
// milliseconds, lock the tables in access exclusive mode, and after lock_not_available or deadlock_detected sleep for a
// second, ten times as long as decisions waited, and try again. After 30 attempts it raises an error whose hint finds
// the session in the way, in pg_locks.
//
// # Migrating
//
// The table paddock.schema_migrations has the version of a schema. Any number of replicas may call Up at
// the same time: one migrates, the others wait. A migration and its version commit together. So one that PostgreSQL
// refuses, or whose connection or process dies, leaves nothing behind but the schema with its table of versions, and
// the next Up or Down continues.
//
// A schema never goes back automatically. A binary that finds a newer schema returns a NewerError and changes
// nothing.
//
// Up and Down need a direct connection, and a role with the right to create in the database. Through a pooler in
// transaction mode they return a poolmode.Error and change nothing. On a server older than PostgreSQL 14, Up, Down
// and Version return a pgversion.TooOldError; for a database of another encoding than UTF8, a pgversion.EncodingError.
package migrations
