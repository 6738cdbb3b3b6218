// Command paddock is the lock service and its command line.
//
//	run          run a command while it holds a lock
//	acquire      acquire a lock and print the lease; renew and release go with it
//	get          show a lock; list shows many, queue the waiters, history, events and watch what happened
//	token        verify fencing tokens
//	revoke       take a lease away from its holder
//	serve        run a replica of the service
//	dev          run the service with its own PostgreSQL, to try it out
//	migrate      migrate the database schema
//	epoch        inspect or start a database epoch
//	healthcheck  check that a replica is ready
//	key          manage API keys
//	config       show each setting of serve, its value, and where it comes from
//	verify       put load on a running service and check its answers
//	demo         demonstrate fencing tokens on a running service
//	fence        install fencing into your own database
//	completion   print a script that completes command lines in a shell
//	man          write the manual pages
//	version      print the version, as --version does
//	help         show the help of a command, as --help does
//
// Most flags can be given in the environment, too, and those of serve in a TOML file; docs/configuration.md lists them. API keys are never arguments:
// they are in PADDOCK_KEY or in a file. Data goes to standard output; messages, the log and errors go to standard
// error.
//
// # Exit codes
//
//	0    success, or a service that was stopped by SIGINT or SIGTERM
//	1    failed; standard error says why
//	64   wrong command line, or none (help goes to standard error), or a request that the service refuses as invalid
//	69   the database or the service cannot be reached, or the outcome is unknown
//	70   internal error of the service
//	75   not acquired: another holder has the lock, calls wait for each other in a deadlock, or a limit is reached
//	76   the lease or the session was lost; token verify: the token is not current
//	77   not allowed: the API key is missing, invalid, or lacks the right; or the database role lacks a right
//	126  run: the command cannot be executed
//	127  run: the command was not found
//
// Otherwise run and session exit with the code of the command, or with 128+n if signal n ended it or the wait. A second
// SIGINT or SIGTERM kills paddock, except that run passes it on. A SIGHUP or SIGINT that is ignored when paddock
// starts, as by nohup or for the background jobs of a script, stays ignored.
//
// # Layout
//
// There is a file for each subcommand. errors.go maps errors to texts and exit codes, output.go prints, sources.go and
// config_file.go find the values of flags that are not given, check.go is serve --check, service.go connects to a
// service, and database.go to a database. Only this package knows both the store and the server. Every
// command is executed by run, which takes arguments, environment and outputs as parameters, so that tests can call it.
package main
