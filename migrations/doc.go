// Package migrations holds the shape of Paddock's tables as numbered pairs of
// SQL files, and brings a database to that shape or back.
//
// # The files
//
// NNNN_name.up.sql and NNNN_name.down.sql, numbered from 0001 without gaps. A
// file that has been released is never changed again. Every name in it is
// qualified with the schema paddock, which Up makes. Each file runs as one
// transaction, so it holds no begin, no commit and nothing that PostgreSQL
// refuses inside a transaction; and a migration must leave the release before
// it working, because replicas are restarted in any order.
//
// # How they are applied
//
// The version that a database is at stands in paddock.schema_migrations, which
// golang-migrate keeps. Any number of replicas may call Up at once: one does the
// work, the others wait. A migration that PostgreSQL refuses leaves nothing
// behind and may be tried again. Only when the connection breaks in the middle
// of one does the schema stay marked dirty; DirtyError then says what to do.
//
// Schema changes never go backward by themselves. A binary that meets a schema
// newer than its own gets a NewerError and leaves it alone.
//
// Up and Down need a direct connection, and a role that may create in the database. Through a
// pooler in transaction mode they return a poolmode.Error and change nothing.
package migrations
