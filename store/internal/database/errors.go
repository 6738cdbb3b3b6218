package database

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/lock"
)

// retryAfter is the delay that callers are given when the database does not answer.
const retryAfter = time.Second

// An Effect is what is known of a transaction that failed.
type Effect int

// The effects.
const (
	Again   Effect = iota // nothing was done, and another attempt may succeed
	Blocked               // nothing was done: another session keeps a row locked
	Failed                // nothing was done, and another attempt would fail in the same way
	Unknown               // it may have been committed
)

// passing are SQLSTATEs, and classes of them, that another attempt may not meet.
var passing = []string{
	"08", "40", "53", "55006", "57",
	"25006", // read-only: the primary has become a standby
	"25P03", // the server ended a transaction of ours that was idle for too long
	"25P04", // or that took too long
}

// ErrMalformed is returned for a row with contents that this binary cannot read. Another attempt would fail, too.
var ErrMalformed = errors.New("a row cannot be read")

// A MalformedError is the ErrMalformed of one row. It costs what it is about, and nothing else.
type MalformedError struct {
	Name  string // of the lock or the session; empty: unknown
	Row   string // the table and the key, as an operator finds the row
	Cause error
}

// Malformed returns the error for the row of the table with the key.
func Malformed(name, table, key string, cause error) *MalformedError {
	return &MalformedError{Name: name, Row: table + " (" + key + ")", Cause: cause}
}

// Error names the row, and what is wrong with it.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("the row of %s cannot be read: %v", e.Row, e.Cause)
}

// Unwrap returns ErrMalformed and the cause.
func (e *MalformedError) Unwrap() []error { return []error{ErrMalformed, e.Cause} }

// Unreadable returns what users are told in a list.
func (e *MalformedError) Unreadable() lock.Unreadable {
	return lock.Unreadable{Name: e.Name, Detail: sentence(e.Error()) + " Correct the row, or delete it."}
}

// sentence returns text with a capital letter and a full stop.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// EffectOf returns the effect of a transaction by an error from before its commit was sent.
func EffectOf(err error) Effect {
	pg := new(pgconn.PgError)
	switch {
	case errors.Is(err, ErrMalformed):
		return Failed
	case !errors.As(err, &pg):
		return Again // the connection is gone, or a row is
	case pg.Code == "55P03":
		return Blocked
	case slices.ContainsFunc(passing, func(code string) bool { return strings.HasPrefix(pg.Code, code) }):
		return Again
	}
	return Failed
}

// EffectOfCommit returns the effect of a transaction by an error of the round trip that commits.
func EffectOfCommit(err error) Effect {
	pg := new(pgconn.PgError)
	if errors.Is(err, ErrUnconfirmed) || !errors.As(err, &pg) {
		return Unknown
	}
	// An ERROR ends the transaction, a FATAL one only the connection; but one that was idle had ended before.
	if pg.SeverityUnlocalized == "ERROR" || pg.Code == "25P03" || pg.Code == "25P04" {
		return EffectOf(err)
	}
	return Unknown
}

// ReadOnly reports whether err shows that the connection leads to a standby, which writes nothing and has no position
// in a log of its own.
func ReadOnly(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && (pg.Code == "25006" || pg.Code == "55000")
}

// Unavailable returns the answer to a call that certainly had no effect.
func Unavailable(cause error) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: cause,
		Detail: "The database does not answer in time. Nothing was changed; retry."}
}

// Busy returns the answer to a call for which there is no room.
func Busy(cause error) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: cause,
		Detail: "Too many calls are pending at this replica. Nothing was changed; retry, or use another replica."}
}

// tableRetryAfter is the delay that callers are given when a table is locked.
const tableRetryAfter = 2 * time.Second

// TableLocked returns the answer to a call that needs a moment in which no other transaction uses paddock.records.
func TableLocked(cause error) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: tableRetryAfter, Cause: cause,
		Detail: "Another transaction uses paddock.records: a VACUUM, an index that is being built, or a session with a " +
			"row locked. Nothing was changed; retry."}
}

// ErrNoStandby is returned for a server that waits for no standby, where one is required: a commit would be on it
// alone.
var ErrNoStandby = errors.New("synchronous_standby_names is empty: this server waits for no standby")

// NoStandby returns the answer to a call that needs a standby.
func NoStandby() error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: ErrNoStandby,
		Detail: "The service is configured to need a standby, and the database has none. Nothing was changed; retry."}
}

// Departed returns the answer to a call that its caller has given up.
func Departed(cause error) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: cause,
		Detail: "The call ended before it was answered. Nothing was changed; retry."}
}

// ErrStopping is the cause of Stopping.
var ErrStopping = errors.New("this replica is shutting down")

// Stopping returns the answer to a call when the replica shuts down.
func Stopping() error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: ErrStopping,
		Detail: "This replica is shutting down. Nothing was changed. Send the same call again; a waiter keeps its place in the queue."}
}

// TooManyWatchers returns the refusal of a call that would wait for events.
func TooManyWatchers(n int) error {
	return &lock.Error{Code: lock.ErrTooManyWaiters, RetryAfter: retryAfter,
		Detail: fmt.Sprintf("The limit of %d watching calls on this replica is reached. Retry later.", n)}
}

// UnknownOutcome returns the answer to a call that may have had an effect.
func UnknownOutcome(cause error) error {
	return &lock.Error{Code: lock.ErrUnknownOutcome, RetryAfter: retryAfter, Cause: cause,
		Detail: "The database's answer was lost, so the outcome is unknown. Send the same call again to find out."}
}

// Internal returns the answer to a call that cannot be done. It names the row or the sequence that is the reason.
func Internal(cause error) error {
	detail := "Internal error. Nothing was changed; see the service's log."
	var row *MalformedError
	var pg *pgconn.PgError
	switch {
	case errors.As(cause, &row):
		detail = row.Unreadable().Detail + " Nothing was changed."
	case errors.As(cause, &pg) && pg.Code == "23514":
		detail = fmt.Sprintf("A value of this lock's row is at its limit: %s of paddock.%s refuses the next one. "+
			"Correct the row, or delete it. Nothing was changed.", pg.ConstraintName, pg.TableName)
	case errors.As(cause, &pg) && pg.Code == "2200H":
		detail = sentence(pg.Message) + " Set it back with setval, above all ids of paddock.event_batches. Nothing was changed."
	}
	return &lock.Error{Code: lock.ErrInternal, Cause: cause, Detail: detail}
}
