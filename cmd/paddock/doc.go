// Command paddock is the lock service and what one needs around it.
//
//	run          run a command while it holds a lock
//	acquire      take a lock and print the lease; renew and release go with it
//	get          show a lock; list shows many, queue who waits, watch what happens
//	revoke       take a lease away from its holder
//	fence        put fencing into a database of one's own
//	serve        run a replica of the service
//	dev          the service with a PostgreSQL of its own, for trying things out
//	demo         show on a running service what a fencing token is for
//	migrate      bring the database's schema up, down, or tell its version
//	healthcheck  ask a replica whether it is ready
//	key          make, list and revoke the API keys of a service
//	version      what this binary is
//
// Every flag of serve but --no-auth and --plain-http can be given in the environment as well;
// the flag wins, and an empty variable counts as none. API keys are never arguments: they are
// in PADDOCK_KEY, or in a file. Data goes to standard output,
// words, the log and the reasons of failures to standard error.
//
// # Exit codes
//
//	0    done, or stopped by SIGINT or SIGTERM in good order
//	1    failed; standard error says why
//	64   the command line is wrong, or asks for what is not allowed
//	69   the database or the service cannot be reached
//	70   a fault of the service
//	75   not acquired: somebody else has the lock
//	76   the lease was lost
//	77   the service does not allow it: no API key, a bad one, or one that is not good for this
//	126  run: the command cannot be executed
//	127  run: there is no such command
//
// Of run the code is otherwise that of the command, or 128 and the number of the
// signal that ended it. A second SIGINT or SIGTERM kills at once, except that run
// passes it on.
//
// # Putting it together
//
// Only this package knows both the store and the server. What a command does it
// does through run, which takes its arguments, environment and outputs as
// parameters, so that tests call it like anything else.
package main
