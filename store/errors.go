package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

// retryAfter is what callers are told to wait when the database does not answer.
const retryAfter = time.Second

// A fate says what is known of a transaction that failed.
type fate int

const (
	again   fate = iota // nothing was done; another try may go well
	blocked             // nothing was done; a row was locked for too long
	failed              // nothing was done, and another try would fail like this one
	unknown             // it may have been committed
)

// passing are the SQLSTATEs, or their classes, that another try may not meet.
var passing = []string{
	"08", "40", "53", "55006", "57",
	"25006", // read-only: the primary has become a standby
	"25P03", // the server ended a transaction of ours that was idle for too long
	"25P04", // or that took too long
}

// fateOf judges an error from before the commit was sent.
func fateOf(err error) fate {
	pg := new(pgconn.PgError)
	switch {
	case !errors.As(err, &pg):
		return again // the connection is gone, or a row was
	case pg.Code == "55P03":
		return blocked
	case slices.ContainsFunc(passing, func(code string) bool { return pg.Code[:min(len(code), len(pg.Code))] == code }):
		return again
	}
	return failed
}

// fateOfCommit judges an error from the round trip that commits.
func fateOfCommit(err error) fate {
	pg := new(pgconn.PgError)
	if errors.Is(err, errUnconfirmed) || !errors.As(err, &pg) {
		return unknown
	}
	// An ERROR ends the transaction, a FATAL one only the connection; but one
	// that sat idle had ended before.
	if pg.SeverityUnlocalized == "ERROR" || pg.Code == "25P03" || pg.Code == "25P04" {
		return fateOf(err)
	}
	return unknown
}

// readOnly is whether err says that the connection leads to a standby: one writes
// nothing, and knows no place in a log of its own.
func readOnly(err error) bool {
	pg := new(pgconn.PgError)
	return errors.As(err, &pg) && (pg.Code == "25006" || pg.Code == "55000")
}

func unavailable(cause error) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: cause,
		Detail: "The database does not answer in time. Nothing was changed; retry."}
}

func noStandby() error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: errNoStandby,
		Detail: "The service is configured to need a standby, and the database has none. Nothing was changed; retry."}
}

// departed is the error of a caller that left while it waited. Nobody may be there
// to be told.
func departed(cause error) error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: cause,
		Detail: "The call ended before it was answered. Nothing was changed; retry."}
}

// errStopping says that this replica is shutting down.
var errStopping = errors.New("this replica is shutting down")

func stopping() error {
	return &lock.Error{Code: lock.ErrUnavailable, RetryAfter: retryAfter, Cause: errStopping,
		Detail: "This replica is shutting down. Nothing was changed. Send the same call again; it keeps its place in the queue."}
}

func tooMany(n int) error {
	return &lock.Error{Code: lock.ErrTooManyWaiters, RetryAfter: retryAfter,
		Detail: fmt.Sprintf("The limit of %d watching calls on this replica is reached. Retry later.", n)}
}

func unknownOutcome(cause error) error {
	return &lock.Error{Code: lock.ErrUnknownOutcome, RetryAfter: retryAfter, Cause: cause,
		Detail: "The database's answer was lost, so the outcome is unknown. Send the same call again to find out."}
}

func internal(cause error) error {
	return &lock.Error{Code: lock.ErrInternal, Cause: cause,
		Detail: "Internal error. Nothing was changed; see the service's log."}
}

// leftEarly turns what a batch.Group says of a caller that left into the words
// of package lock.
func leftEarly(err error) error {
	a := new(batch.CanceledError)
	left := errors.As(err, &a)
	switch {
	case left && a.Started:
		return unknownOutcome(err)
	case left, errors.Is(err, batch.ErrFull):
		return unavailable(err)
	}
	return err
}

// readFailed is the error of a read.
func readFailed(err error) error {
	if fateOf(err) == failed && !errors.Is(err, context.Canceled) {
		return internal(err)
	}
	return unavailable(err)
}
