package pgserver

import (
	"context"
	"io"
)

// Options configure a server. The zero value is a server with PostgreSQL's defaults in a temporary directory.
type Options struct {
	// Dir contains the data directory, and is created if necessary. Empty means a temporary directory, which Stop
	// removes.
	Dir string

	// Database is created at the first start. Empty: only the database postgres exists.
	Database string

	// Settings are parameters as in postgresql.conf. They cannot change where the server listens.
	Settings map[string]string

	// Cached creates the data directory from a copy that is kept in the temporary directory, which is faster than
	// initdb. The servers have the same system identifier. It is meant for tests.
	Cached bool

	// Stderr receives the server's log, unless it runs in a container. If it is nil, only errors quote the end of the
	// log.
	Stderr io.Writer

	// Log gets a line if Docker is used, and one for each way in which PostgreSQL is fetched. Nil is os.Stderr.
	Log io.Writer

	// Env looks up environment variables. Nil is os.LookupEnv.
	Env func(name string) (value string, ok bool)

	// Otherwise says in errors how the caller takes another server, such as: give --database-url.
	Otherwise string
}

// A Database is a PostgreSQL server that runs for this process: a Server, or a container of Docker.
type Database interface {
	// URL returns the connection string of a database.
	URL(database string) string
	// Version returns the server's version, such as 17.2.
	Version() string
	// Data says where the data is, for people.
	Data() string
	// Done returns a channel that is closed when the server has ended for any reason.
	Done() <-chan struct{}
	// Stop shuts the server down cleanly, and removes it and its data if the data is temporary. If ctx ends first, the
	// server is killed and the error says so. A second Stop does nothing.
	Stop(ctx context.Context) error
}
