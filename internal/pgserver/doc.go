// Package pgserver runs a private PostgreSQL server from the programs that are installed on this machine. `paddock
// dev` keeps its database in one, and package pgtest gives one to each test process.
//
// # Servers
//
// A server listens only on a Unix socket in a directory that only its account and root can enter. So it has no port
// that could clash, and no password. Its superuser is named paddock; its databases have the encoding UTF-8 and the
// locale C. PostgreSQL refuses to run as root: for root the server runs as the owner of an existing data directory,
// else as the user postgres, else as an unprivileged user.
//
// Options.Dir contains everything that must persist:
//
//	data/        the PostgreSQL data directory
//	run/         the socket, unless its path would be too long
//	paddock.pid  the process that uses the directory, locked with flock
//
// # The end of a server
//
// Stop shuts the server down cleanly. Kill ends it like a crash, and Restart starts it again at the same URL;
// committed data survives both. On Linux the kernel ends the server when the process that started it dies, even by
// SIGKILL. Elsewhere it runs until the next Start on the same Dir. Start always stops an orphaned server and takes
// over its directory.
//
// # Limits
//
// Do not run a production database this way: the data directory is created without waiting for the disk, and there
// are no backups and no upgrades between major versions. The running server is as durable as any: fsync and
// synchronous_commit are on unless Options.Settings change them, so that tests can check durability.
package pgserver
