package database

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/pgconnect"
	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/lock"
)

// retryAfter is the delay that callers are given when the database does not answer.
const retryAfter = time.Second

// personRetryAfter is the delay that callers are given where a person must grant a right, or restore a table, first.
const personRetryAfter = 5 * time.Second

// An Effect is what is known of a transaction that failed.
type Effect int

// The effects.
const (
	Again   Effect = iota // nothing was done, and another attempt may succeed
	Blocked               // nothing was done: another session keeps a row locked
	Failed                // nothing was done, and another attempt would fail in the same way
	Unknown               // it may have been committed
)

// ErrMalformed is returned for a row with contents that this binary cannot read. Another attempt would fail, too.
var ErrMalformed = errors.New("a row cannot be read")

// A MalformedError is the ErrMalformed of one row. It costs what it is about, and nothing else.
type MalformedError struct {
	Name   string // of the lock or the session; empty: unknown
	Table  string // without its schema
	Key    string // as an operator finds the row
	Cause  error
	Remedy string // what an operator does; empty: correct the row, or delete it
}

// Error names the row, and what is wrong with it.
func (e *MalformedError) Error() string {
	return fmt.Sprintf("the row of the table %s (%s) cannot be read: %v", e.Table, e.Key, e.Cause)
}

// row returns the table and the key.
func (e *MalformedError) row(in schema.Name) string {
	return in.String() + "." + e.Table + " (" + e.Key + ")"
}

// Unwrap returns ErrMalformed and the cause.
func (e *MalformedError) Unwrap() []error { return []error{ErrMalformed, e.Cause} }

// unreadable returns what users are told in a list.
func (e *MalformedError) unreadable(in schema.Name) paddock.Unreadable {
	detail := fmt.Sprintf("The row of %s cannot be read: %v", e.row(in), e.Cause)
	return paddock.Unreadable{Name: e.Name, Detail: sentence(detail) + " " + cmp.Or(e.Remedy, "Correct the row, or delete it.")}
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
	case errors.As(err, new(*pgconn.ConnectError)):
		return Again // the password is being changed, or no connection is left
	case pg.Code == "55P03":
		return Blocked
	case pgconnect.Passes(pg.Code):
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

// Unavailable returns the answer to a call that certainly had no effect.
func Unavailable(cause error) error {
	detail := "The database does not answer in time. Nothing was changed; retry."
	pg := new(pgconn.PgError)
	switch {
	case !errors.As(cause, &pg):
	case pgconnect.ReadOnly(cause):
		detail = "The database accepts no writes: it is a standby, or default_transaction_read_only is set. " +
			"Nothing was changed; retry."
	case errors.As(cause, new(*pgconn.ConnectError)):
		detail = "The database refuses connections; the service's log says why. Nothing was changed; retry."
	}
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: cause, Detail: detail}
}

// Busy returns the answer to a call for which there is no room.
func Busy(cause error) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: cause,
		Detail: "Too many calls are pending at this replica. Nothing was changed; retry, or use another replica."}
}

// tableRetryAfter is the delay that callers are given when a table is locked.
const tableRetryAfter = 2 * time.Second

// TableLocked returns the answer to a call that needs a moment in which no other transaction uses paddock.records.
func (d *DB) TableLocked(cause error) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: tableRetryAfter, Cause: cause,
		Detail: d.Schema.In("Another transaction uses paddock.records: a VACUUM, an index that is being built, or a session with " +
			"a row locked. Nothing was changed; retry.")}
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

// ErrOutdated means that a later release has migrated the schema, and that this one's statements fail on it.
var ErrOutdated = errors.New("this replica is of an earlier release than the schema of its database; stop it and start " +
	"the new release")

// The SQLSTATEs for a missing table or schema, and for a missing function.
const (
	undefinedTable    = "42P01"
	undefinedFunction = "42883"
)

// ErrObjectsMissing means that tables or functions of the service were dropped, or that their schema was dropped or
// migrated down.
var ErrObjectsMissing = errors.New("tables or functions of the service are missing from the database")

// objectsMissing returns the refusal of a replica whose schema has the version of this binary and lacks these tables,
// functions or triggers. Their names are in the detail: they are no secret.
func (d *DB) objectsMissing(names []string) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: personRetryAfter,
		Cause:  fmt.Errorf("%w: %s: restore the schema %s from a backup", ErrObjectsMissing, strings.Join(names, ", "), d.Schema),
		Detail: "The database lacks tables, functions or triggers of the service: " + strings.Join(names, ", ") + ". Restore the schema from a backup."}
}

// CauseOf returns what to log of an error of this package: the cause of an answer, which is more than callers are told.
func CauseOf(err error) error {
	if answer := (*lock.Error)(nil); errors.As(err, &answer) && answer.Cause != nil {
		return answer.Cause
	}
	return err
}

// Internal returns the answer to a call that cannot be done. It names the row or the sequence that is the reason.
// The service is unavailable where only a right is missing, and where the cause is ErrOutdated or ErrObjectsMissing.
func Internal(cause error, in schema.Name) error {
	if errors.Is(cause, ErrOutdated) {
		return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: cause,
			Detail: "This replica is of an earlier release than the schema of its database, and must be replaced. " +
				"Nothing was changed; retry, or use another replica."}
	}
	if errors.Is(cause, ErrObjectsMissing) {
		return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: personRetryAfter, Cause: cause,
			Detail: "The database lacks tables or functions that the service needs; the log says what an operator must do. " +
				"Nothing was changed; retry once they are there."}
	}
	if pgconnect.Denied(cause) {
		return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: personRetryAfter, Cause: cause,
			Detail: "The database denies the service a right that it needs; the log and the operators know which. " +
				"Nothing was changed; retry once it is granted."}
	}
	detail := "Internal error. Nothing was changed; see the service's log."
	var row *MalformedError
	var pg *pgconn.PgError
	switch {
	case errors.As(cause, &row):
		detail = row.unreadable(in).Detail + " Nothing was changed."
	case errors.As(cause, &pg) && pg.Code == "23514":
		detail = fmt.Sprintf("A value of this lock's row is at its limit: %s of %s.%s refuses the next one. "+
			"Correct the row, or delete it. Nothing was changed.", pg.ConstraintName, in, pg.TableName)
	case errors.As(cause, &pg) && pg.Code == "2200H":
		detail = sentence(pg.Message) + in.In(" Set it back with setval, above all ids of paddock.event_batches. Nothing was changed.")
	}
	return &lock.Error{Code: lock.ErrInternal, Cause: cause, Detail: detail}
}
