// Package migrations contains the schema of Paddock's tables as numbered pairs of SQL files, and migrates databases.
//
// # Files
//
// The files are NNNN_name.up.sql and NNNN_name.down.sql, numbered from 0001 without gaps. The statements of a
// released file never change. Every name is qualified with the schema paddock, which Up creates. Each file runs as
// one transaction, so it contains no begin, no commit, and no statement that PostgreSQL refuses inside a transaction.
// The previous release must work with the new schema, because replicas restart in any order.
//
// # Migrating
//
// golang-migrate keeps the version of a database in paddock.schema_migrations. Any number of replicas may call Up at
// the same time: one migrates, the others wait. A migration that PostgreSQL refuses leaves nothing behind and can be
// repeated. The schema stays marked dirty only if the connection breaks during a migration; DirtyError then says what
// to do.
//
// A schema never goes back automatically. A binary that finds a newer schema returns a NewerError and changes
// nothing.
//
// Up and Down need a direct connection, and a role with the right to create in the database. Through a pooler in
// transaction mode they return a poolmode.Error and change nothing. On a server older than PostgreSQL 14, Up, Down and
// Version return a pgversion.TooOldError.
package migrations
