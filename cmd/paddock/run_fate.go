package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/paddock-lock/paddock/lock"
)

// errOfCommand stands for a failure of which the command has said what there is to say.
var errOfCommand = errors.New("the command has failed")

// conclude releases the lease and returns what became of the job. The command was not
// started because of that error, or was if there is none.
func (j *job) conclude(ctx context.Context, notStarted error) error {
	late := j.lease.Err()
	left := j.lease.Release(ctx)
	switch {
	case left == nil:
		late = nil // the lease was ours until now
	case errors.Is(left, lock.ErrLeaseLost):
		late = left
	case j.loss == nil:
		j.said.say("%s was not released, since nobody answers; it is free when the lease ends: %v", j.lease.Name(), left)
	}
	switch {
	case notStarted != nil:
		return notStarted
	case j.loss != nil:
		return &failure{exitLeaseLost, fmt.Errorf("the command was stopped (%s), since it lost the lock: %w", ended(j.fate), refused(j.loss))}
	case late != nil:
		return &failure{exitLeaseLost, fmt.Errorf("the command has ended (%s), but its lease had before: its work may have overlapped with another's: %w",
			ended(j.fate), refused(late))}
	}
	return failed(j.fate)
}

// failed returns nil for a command that has ended with exit code 0, else a failure
// with its exit code.
func failed(fate syscall.WaitStatus) error {
	code := fate.ExitStatus()
	if fate.Signaled() {
		code = exitSignalled + int(fate.Signal())
	}
	if code == exitOK {
		return nil
	}
	return &failure{code, errOfCommand}
}

// ended says how the command has.
func ended(fate syscall.WaitStatus) string {
	if fate.Signaled() {
		return unix.SignalName(fate.Signal())
	}
	return fmt.Sprintf("exit code %d", fate.ExitStatus())
}
