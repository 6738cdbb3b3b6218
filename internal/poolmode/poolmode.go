// Package poolmode finds out whether a connection pooler in transaction mode stands between this
// process and PostgreSQL.
//
// Such a pooler lends a server connection to a client for one transaction only. What belongs to a
// session does not work through it: LISTEN, advisory locks, settings, prepared statements.
//
// Detect compares backends, and does not depend on the product. A client that is connected to
// PostgreSQL, or through a pooler in session mode, has one backend as long as it is connected, and
// shares it with no other client. So Detect never takes such a connection for a pooled one. It may
// overlook a pooler that gives two clients a backend each by chance, over several transactions in
// which it must give away the one that a client has just used.
package poolmode

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// rounds is how often Detect asks both connections for their backends. One is enough for a
	// pooler that is idle.
	rounds = 3
	// holdTime is how long one connection keeps its transaction open while the other waits for a
	// backend. PostgreSQL lets neither wait for the other; a pooler with one connection does.
	holdTime = 250 * time.Millisecond
	// detectTimeout is how long Detect may take.
	detectTimeout = 5 * time.Second
)

// What an Error advises.
const (
	ToServe   = "Start paddock with --pooler-mode=transaction, or give a URL that leads to PostgreSQL directly."
	ToMigrate = "Migrate with a URL that leads to PostgreSQL directly."
)

// An Error says that a pooler in transaction mode stands where none may.
type Error struct {
	Advice string // what to do, a sentence
	Cause  error  // what PostgreSQL said; nil if Detect found the pooler
}

// Error returns the finding and the advice. The cause is left out on purpose: what PostgreSQL says
// of its prepared statements leads astray.
func (e *Error) Error() string {
	return "The database URL leads through a connection pooler in transaction mode. " + e.Advice
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Explain returns err, or an Error with that advice if err is what PostgreSQL says when a pooler
// mixes up prepared statements: one is there already (42P05), or is not there (26000).
func Explain(err error, advice string) error {
	var said *pgconn.PgError
	if errors.As(err, &said) && (said.Code == "42P05" || said.Code == "26000") {
		return &Error{Advice: advice, Cause: err}
	}
	return err
}

// Refuse returns an Error with that advice if Detect finds a pooler in transaction mode.
func Refuse(ctx context.Context, a, b *pgconn.PgConn, advice string) error {
	found, err := Detect(ctx, a, b)
	if err == nil && found {
		return &Error{Advice: advice}
	}
	return Explain(err, advice)
}

// Detect reports whether a pooler in transaction mode serves the two connections, which nothing
// else may use meanwhile. It takes a dozen round trips, and five seconds at most: false without an
// error also says that it could not tell in that time. The connections may be closed then.
func Detect(ctx context.Context, a, b *pgconn.PgConn) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, detectTimeout)
	defer cancel()
	first, second := &probedConn{conn: a}, &probedConn{conn: b}
	for range rounds {
		if err := round(bounded, first, second); err != nil {
			if bounded.Err() != nil && ctx.Err() == nil {
				return false, nil // the pooler, or the database, is too busy to tell
			}
			return false, err
		}
		if first.moved || second.moved || first.backend == second.backend {
			return true, nil
		}
		first, second = second, first
	}
	return false, nil
}

// A probedConn is a connection, and what was seen of its backends.
type probedConn struct {
	conn    *pgconn.PgConn
	backend string // the last one
	moved   bool   // it had another before
}

// round has second open a transaction after one of first. A pooler then gives second the backend
// that first had, or one of the others; in the latter case first is to move when it asks again.
func round(ctx context.Context, first, second *probedConn) error {
	if err := first.probe(ctx, ""); err != nil {
		return err
	}
	if err := second.probe(ctx, "begin; "); err != nil {
		return err
	}
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		err = first.probe(ctx, "")
	}()
	select {
	case <-answered:
	case <-time.After(holdTime):
	}
	_, errEnd := second.conn.Exec(ctx, "rollback").ReadAll()
	<-answered
	return errors.Join(err, errEnd)
}

// probe notes which backend the client has. A process id alone would not do: two servers behind
// one address may have backends of the same id.
func (c *probedConn) probe(ctx context.Context, before string) error {
	results, err := c.conn.Exec(ctx, before+"select pg_catalog.pg_backend_pid(), "+
		"pg_catalog.date_part('epoch', pg_catalog.pg_postmaster_start_time())").ReadAll()
	if err != nil {
		return err
	}
	row := results[len(results)-1].Rows[0]
	backend := string(row[0]) + " since " + string(row[1])
	c.moved = c.moved || c.backend != "" && c.backend != backend
	c.backend = backend
	return nil
}
