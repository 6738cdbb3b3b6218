// Package schema has the name of the PostgreSQL schema with the tables of a deployment, and puts it into statements.
//
// Several deployments may share a database, each in a schema of its own. All that PostgreSQL shares between schemas
// has a name or a key that is derived from that of the schema: channels of notifications and advisory locks.
//
// SQL files are written for the schema paddock, as one reads them and tries them in psql. Poolers in transaction mode
// keep no search_path, so the text itself is changed, once for each statement.
package schema
