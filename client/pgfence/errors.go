package pgfence

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/lock"
)

// The SQLSTATEs of paddock_fence.
const (
	codeStaleToken  = "PF001"
	codeInvalidCall = "PF002"
)

// fenceError returns a *lock.Error for a refusal by the fence, from any statement of the transaction.
// It returns other errors unchanged.
func fenceError(err error, token lock.Token) error {
	pg := new(pgconn.PgError)
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case codeStaleToken:
		return staleTokenError(pg, err, token)
	case codeInvalidCall:
		return &lock.Error{Code: lock.ErrInvalid, Detail: pg.Message + ". " + pg.Hint, Cause: err}
	}
	return err
}

func staleTokenError(pg *pgconn.PgError, cause error, token lock.Token) error {
	e := &lock.Error{Code: lock.ErrStaleToken, Token: token, Detail: pg.Message + ". " + pg.Hint, Cause: cause}
	var shown, newest lock.Token
	if _, err := fmt.Sscanf(pg.Detail, "token shown: %d, greatest token seen: %d", &shown, &newest); err == nil {
		e.Token, e.Newest = shown, newest
	}
	return e
}

// setupError adds instructions to an error of the call of paddock_fence.
func setupError(err error) error {
	pg := new(pgconn.PgError)
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "42883": // undefined_function
		return fmt.Errorf("pgfence: paddock_fence is not in the search_path of this connection, or is that of an earlier "+
			"release; run paddock fence install on this database, or add the function's schema to the search_path: %w", err)
	case "42P01": // undefined_table
		return fmt.Errorf("pgfence: paddock_fence does not find its table, perhaps because its schema was renamed; "+
			"run paddock fence install again: %w", err)
	case "42501": // insufficient_privilege
		return fmt.Errorf("pgfence: this role is not permitted to pass the fence; "+
			"grant it select, insert and update on paddock_fences, for Once also select, insert, update and delete on "+
			"paddock_operations, and usage on their schema: %w", err)
	}
	return err
}

// commitResult returns the error of Tx for the error of a commit.
func commitResult(err error, token lock.Token) error {
	pg := new(pgconn.PgError)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("pgfence: nothing was committed: a statement failed, but the function returned nil: %w", err)
	case errors.Is(err, pgx.ErrTxClosed):
		return fmt.Errorf("pgfence: the function must not end the transaction itself: %w", err)
	case pgconn.SafeToRetry(err):
		return fmt.Errorf("pgfence: nothing was committed: the commit could not be sent: %w", err)
	case errors.As(err, &pg) && refusesCommit(pg):
		return fenceError(err, token)
	}
	return outcomeUnknown(err)
}

// refusesCommit reports whether the error shows that the transaction was rolled back. A FATAL error
// only shows that the connection was closed, except for an idle or overlong transaction
// (25P03, 25P04), which the server ended before the commit arrived.
func refusesCommit(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "ERROR" || pg.Code == "25P03" || pg.Code == "25P04"
}

func outcomeUnknown(cause error) error {
	return &lock.Error{Code: lock.ErrUnknownOutcome, Cause: cause,
		Detail: "The commit was sent but not confirmed. Read the data to find out whether it was written."}
}
