package main

import (
	"errors"
	"fmt"

	"github.com/paddock-lock/paddock/lock"
)

// The exit codes, after sysexits.h.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 64
	exitUnreachable = 69
	exitInternal    = 70
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
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &f):
		return f.code
	case errors.Is(err, lock.ErrUnavailable), errors.Is(err, lock.ErrUnknownOutcome):
		return exitUnreachable
	case errors.Is(err, lock.ErrInternal):
		return exitInternal
	default:
		return exitFailed
	}
}
