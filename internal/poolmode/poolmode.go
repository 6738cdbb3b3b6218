// Package poolmode detects a connection pooler in transaction mode between this process and
// PostgreSQL.
//
// Such a pooler lends a server connection to a client for one transaction only. Session features do
// not work through it: LISTEN, advisory locks, settings, prepared statements.
//
// Detect compares backend processes, so it works with any pooler. A client of PostgreSQL itself, or
// of a pooler in session mode, keeps one backend for as long as it is connected and shares it with no
// other client. Detect therefore never reports such a connection. It may miss a pooler that happens
// to give each of the two connections its own backend in several transactions in a row.
package poolmode

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// rounds is how often Detect compares the backends of the two connections. One round is
	// enough for an idle pooler.
	rounds = 3
	// holdTime is how long one connection keeps its transaction open while the other waits for a
	// backend. It waits only if a pooler has a single server connection.
	holdTime = 250 * time.Millisecond
	// detectTimeout bounds Detect.
	detectTimeout = 5 * time.Second
)

// The possible Advice of an Error.
const (
	ToServe   = "Start paddock with --pooler-mode=transaction, or give a URL that leads to PostgreSQL directly."
	ToMigrate = "Migrate with a URL that leads to PostgreSQL directly."
)

// An Error reports a pooler in transaction mode where it is not supported.
type Error struct {
	Advice string // what to do, a sentence
	Cause  error  // the error of PostgreSQL; nil if Detect found the pooler
}

// Error returns the problem and the advice. It leaves out the cause: PostgreSQL's error about
// prepared statements is misleading here.
func (e *Error) Error() string {
	return "The database URL leads through a connection pooler in transaction mode. " + e.Advice
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Explain returns an Error with the advice if err shows that a pooler mixed up prepared
// statements: one exists already (42P05) or does not exist (26000). Otherwise it returns err.
func Explain(err error, advice string) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && (pgErr.Code == "42P05" || pgErr.Code == "26000") {
		return &Error{Advice: advice, Cause: err}
	}
	return err
}

// Refuse returns an Error with the advice if Detect finds a pooler in transaction mode.
func Refuse(ctx context.Context, a, b *pgconn.PgConn, advice string) error {
	found, err := Detect(ctx, a, b)
	if err == nil && found {
		return &Error{Advice: advice}
	}
	return Explain(err, advice)
}

// Detect reports whether a pooler in transaction mode serves the two connections. Nothing else may
// use them meanwhile. It takes a dozen round trips, or five seconds at most; if that is not enough,
// it returns false without an error, and the connections may be closed.
func Detect(ctx context.Context, a, b *pgconn.PgConn) (bool, error) {
	bounded, cancel := context.WithTimeout(ctx, detectTimeout)
	defer cancel()
	first, second := &probedConn{conn: a}, &probedConn{conn: b}
	for range rounds {
		if err := round(bounded, first, second); err != nil {
			if bounded.Err() != nil && ctx.Err() == nil {
				return false, nil // the pooler or the database is too busy
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

// A probedConn is a connection and the backends seen behind it.
type probedConn struct {
	conn    *pgconn.PgConn
	backend string // in the latest transaction
	moved   bool   // the backend has changed
}

// round runs a transaction on first and then opens one on second. A pooler gives second either the
// backend that first had, or another one. In the latter case, first is likely to get another backend
// when it runs its next transaction.
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

// probe records the connection's backend. A process id alone is not unique: two servers behind one
// address may have backends with the same id.
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
