// Package pgserver runs a private PostgreSQL server from the programs that are
// installed on this machine. `paddock dev` keeps its database in one, and
// package pgtest gives every test process one of its own.
//
// # What a Server is
//
// A server listens on a Unix socket only, in a directory that nobody but its
// own account (and root) can enter, so it has no port to clash with and no
// password. Its superuser is called paddock; its databases are UTF-8 with the
// C locale. Started by root it runs as the user postgres, or else nobody,
// because PostgreSQL refuses to run as root; an existing data directory decides
// by its owner.
//
// Options.Dir holds everything that is to last:
//
//	data/        the PostgreSQL data directory
//	run/         the socket, unless the path would be too long for one
//	paddock.pid  who uses the directory; locked with flock while in use
//
// # How it ends
//
// Stop shuts the server down in good order. Kill ends it as a crash would, and
// Restart brings it back at the same URL; committed data survives both. On
// Linux the kernel ends the server when the process that started it dies, even
// by SIGKILL. Elsewhere it lives on until the next Start on the same Dir,
// which in any case stops an orphan and takes the directory over.
//
// # What it is not
//
// It is not a way to run a production database: the data directory is made
// without waiting for the disk, and there is no backup and no upgrade from one
// major version to the next. What the server does once it runs is not softened,
// though: fsync and synchronous_commit stay on unless Options.Settings say
// otherwise, so that durability can be tested.
package pgserver
