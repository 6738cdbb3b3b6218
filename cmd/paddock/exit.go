package main

import (
	"errors"
	"fmt"

	"github.com/paddock-lock/paddock/internal/poolmode"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

// The exit codes, after sysexits.h; of a child, as a shell has them.
const (
	exitOK            = 0
	exitFailed        = 1
	exitUsage         = 64
	exitUnreachable   = 69
	exitInternal      = 70
	exitNotAcquired   = 75
	exitLeaseLost     = 76
	exitNotAllowed    = 77
	exitNotExecutable = 126
	exitNotFound      = 127
)

// A failure is an error with an exit code of its own.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// usagef returns a failure of whoever wrote the command line.
func usagef(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// unreachablef returns a failure to get through to the database or the service.
func unreachablef(format string, args ...any) error {
	return &failure{exitUnreachable, fmt.Errorf(format, args...)}
}

// exitCode returns the code that tells err to whoever started us.
func exitCode(err error) int {
	var f *failure
	var pooler *poolmode.Error
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, lock.ErrHeld), errors.Is(err, lock.ErrTooManyWaiters), errors.Is(err, lock.ErrRateLimited):
		return exitNotAcquired
	case errors.Is(err, lock.ErrLeaseLost):
		return exitLeaseLost
	case errors.Is(err, lock.ErrKeyMissing), errors.Is(err, lock.ErrKeyInvalid), errors.Is(err, lock.ErrKeyExpired),
		errors.Is(err, lock.ErrRoleMissing), errors.Is(err, lock.ErrNameNotAllowed), errors.Is(err, server.ErrCrossOrigin):
		return exitNotAllowed
	case errors.Is(err, lock.ErrInvalid), errors.Is(err, lock.ErrLeaseIDInUse), errors.Is(err, lock.ErrCapacityMismatch),
		errors.Is(err, server.ErrNoRoute), errors.As(err, &pooler):
		return exitUsage
	case errors.Is(err, lock.ErrUnavailable), errors.Is(err, lock.ErrUnknownOutcome):
		return exitUnreachable
	case errors.Is(err, lock.ErrInternal):
		return exitInternal
	default:
		return exitFailed
	}
}
