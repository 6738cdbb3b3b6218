// Package pgserver runs a private PostgreSQL server. `paddock dev` keeps its database in one, and package pgtest gives
// one to each test process.
//
// # Where PostgreSQL comes from
//
// The first of these is used:
//
//  1. installed programs: those in the PATH, else the newest in the usual directories of packages;
//  2. programs that were fetched before, see package usercache;
//  3. a container, if Docker runs on this machine, for callers of Open;
//  4. programs that are fetched now, see package fetch.
//
// Callers of Start, Find and NewHost control processes or need files, so they skip Docker. Data that exists is opened
// by the major version that wrote it, and data in a volume of Docker by Docker. The environment chooses:
// PADDOCK_FETCH=never forbids fetching, PADDOCK_FETCH_MIRROR names a mirror, and PADDOCK_POSTGRES_VERSION demands a
// major version.
//
// # Servers
//
// A Server listens only on a Unix socket in a directory that only its account and root can enter. So it has no port
// that could clash, and no password. Its superuser is named paddock; its databases have the encoding UTF-8 and the
// locale C. PostgreSQL refuses to run as root: for root the server runs as the owner of an existing data directory,
// else as the user postgres, else as an unprivileged user.
//
// Options.Dir contains everything that must persist:
//
//	data/        the PostgreSQL data directory
//	run/         the socket, unless its path would be too long
//	paddock.pid  the process that uses the directory, locked with flock
//	container    the container and its password, if Docker has the data
//
// A container listens on a port of 127.0.0.1 that Docker chooses, with a random password. Its data is in a volume with
// the container's name, unless the directory is temporary.
//
// # The end of a server
//
// Stop shuts the server down cleanly. Kill ends it like a crash, and Restart starts it again at the same URL;
// committed data survives both. On Linux the kernel ends the server when the process that started it dies, even by
// SIGKILL. Elsewhere it runs until the next Start on the same Dir. Start always stops an orphaned server and takes
// over its directory. A container is removed by Stop, and after a crash by the next Open.
//
// # Limits
//
// Do not run a production database this way: the data directory is created without waiting for the disk, and there
// are no backups and no upgrades between major versions. The running server is as durable as any: fsync and
// synchronous_commit are on unless Options.Settings change them, so that tests can check durability.
package pgserver
