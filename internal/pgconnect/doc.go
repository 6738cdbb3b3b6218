// Package pgconnect turns a database URL into the configuration of connections, for everything in Paddock that connects
// to PostgreSQL: the service, the commands, the migrations, and the installer of fences.
//
// # Settings
//
// A role or a database may have settings of its own, such as datestyle or statement_timeout. Parse sends the settings
// that decide how values are written with the start of each connection, where they win over those of the role. Poolers
// in transaction mode keep them, too. Pin sets the others, for connections that lead to PostgreSQL directly.
//
// # Secrets
//
// No error of this package contains a part of the URL. A URL with a character in its password that has a meaning in
// URLs is refused: otherwise the rest of the password would be taken for a host and a database, looked up in DNS, and
// logged.
package pgconnect
