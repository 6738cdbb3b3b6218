package pgconnect

import (
	"context"
	_ "embed"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

//go:embed pin.sql
var pinSQL string

// Pin sets what the role or the database may have set otherwise: time-outs, the search path, and how values are read
// that Parse leaves open. The connection must lead to PostgreSQL, or through a pooler in session mode.
func Pin(ctx context.Context, conn *pgconn.PgConn) error { return conn.Exec(ctx, pinSQL).Close() }

// passing are SQLSTATEs, and classes of them, that another attempt may not meet.
var passing = []string{
	"08", "40", "53", "55006", "57",
	"25006", // read-only: the primary has become a standby
	"55000", // it has no position in a log of its own, for the same reason
	"25P03", // the server ended a transaction of ours that was idle for too long
	"25P04", // or that took too long
}

// Passes reports whether an error with the SQLSTATE may be over soon.
func Passes(sqlstate string) bool {
	return slices.ContainsFunc(passing, func(code string) bool { return strings.HasPrefix(sqlstate, code) })
}

// ReadOnly reports whether err shows that the connection leads to a standby, which writes nothing and has no position
// in a log of its own, or that the role may not write at present.
func ReadOnly(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && (pg.Code == "25006" || pg.Code == "55000")
}

// Denied reports whether err shows that the role lacks a right.
func Denied(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && pg.Code == "42501"
}
