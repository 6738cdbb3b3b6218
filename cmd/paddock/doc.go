// Command paddock is the lock service and what one needs around it.
//
//	serve        run a replica of the service
//	dev          the service with a PostgreSQL of its own, for trying things out
//	demo         show on a running service what a fencing token is for
//	migrate      bring the database's schema up, down, or tell its version
//	healthcheck  ask a replica whether it is ready
//	version      what this binary is
//
// Every flag of serve but --no-auth can be given in the environment as well; the
// flag wins, and an empty variable counts as none. What is for people or for scripts goes
// to standard output, the log and the reasons of failures to standard error.
//
// # Exit codes
//
//	0   done, or stopped by SIGINT or SIGTERM in good order
//	1   failed; standard error says why
//	64  the command line is wrong, or asks for what is not allowed
//	69  the database or the service cannot be reached
//	70  a fault of the service
//
// A second SIGINT or SIGTERM kills at once.
//
// # Putting it together
//
// Only this package knows both the store and the server. What a command does it
// does through run, which takes its arguments, environment and outputs as
// parameters, so that tests call it like anything else.
package main
