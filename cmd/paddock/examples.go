package main

// What help shows, below its first line, of the commands that do not take a lock.

// Help shows how to use it.
func (serveCommand) Help() string {
	return `Run as many replicas as you like on one database. SIGTERM ends one in good order: calls that wait there find their places at another.

    export PADDOCK_DATABASE_URL=postgres://paddock:secret@db.example/paddock
    paddock migrate up
    paddock serve

For other machines to reach it, with API keys and over TLS:

    paddock key new --auth-file keys.json --role admin me
    paddock serve --listen :8443 --auth-file keys.json --tls-cert cert.pem --tls-key key.pem`
}

// Help shows how to use it.
func (devCommand) Help() string {
	return `It needs the PostgreSQL server programs, and no server that runs.

    paddock dev
    paddock dev --ephemeral --listen 127.0.0.1:0`
}

// Help shows how to use it.
func (migrateCommand) Help() string {
	return `A migration never breaks the release before it, so bring the schema up first and the binaries after it.

    paddock migrate version --database-url postgres://paddock@db.example/paddock
    paddock migrate up --database-url postgres://paddock@db.example/paddock
    paddock migrate down --steps 1 --yes --database-url postgres://paddock@db.example/paddock`
}

// Help shows how to use it.
func (healthcheckCommand) Help() string {
	return `Exit code 0 says that the replica is ready to be sent requests, 1 that it is not.

    paddock healthcheck --url http://127.0.0.1:8080`
}

// Help shows how to use it.
func (demoCommand) Help() string {
	return `A worker is stopped for longer than its lease lasts, another takes over, the first wakes up and writes: the fencing token has that refused. ` +
		`It needs a service, such as paddock dev.

    paddock demo --url http://127.0.0.1:8080`
}
