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

// fenceError turns a refusal by the fence, wherever in the transaction it came
// from, into the words of package lock. Other errors stay as they are.
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

// setupError adds to an error of the call of paddock_fence what to do about it.
func setupError(err error) error {
	pg := new(pgconn.PgError)
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "42883": // undefined_function
		return fmt.Errorf("pgfence: there is no paddock_fence in the search_path of this connection; "+
			"run paddock fence install on this database, or put the schema that it is in into the search_path: %w", err)
	case "42P01": // undefined_table
		return fmt.Errorf("pgfence: paddock_fence does not find its table, as after its schema was renamed; "+
			"run paddock fence install again: %w", err)
	case "42501": // insufficient_privilege
		return fmt.Errorf("pgfence: this role may not pass the fence; "+
			"grant it select, insert and update on paddock_fences, and usage of its schema: %w", err)
	}
	return err
}

// commitResult judges what came of a commit.
func commitResult(err error, token lock.Token) error {
	pg := new(pgconn.PgError)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("pgfence: nothing was committed, because a statement had failed and the function returned nil all the same: %w", err)
	case errors.Is(err, pgx.ErrTxClosed):
		return fmt.Errorf("pgfence: the function has ended the transaction itself: %w", err)
	case pgconn.SafeToRetry(err):
		return fmt.Errorf("pgfence: nothing was committed, because the commit could not be sent: %w", err)
	case errors.As(err, &pg) && refusesCommit(pg):
		return fenceError(err, token)
	}
	return outcomeUnknown(err)
}

// refusesCommit is whether the server says that the transaction is undone. A
// FATAL error ends the connection only; but for a transaction that was idle for
// too long, or that took too long, it came before the commit did.
func refusesCommit(pg *pgconn.PgError) bool {
	return pg.SeverityUnlocalized == "ERROR" || pg.Code == "25P03" || pg.Code == "25P04"
}

func outcomeUnknown(cause error) error {
	return &lock.Error{Code: lock.ErrUnknownOutcome, Cause: cause,
		Detail: "The commit was sent and is not confirmed. What was written may be there or not; read it to find out."}
}
