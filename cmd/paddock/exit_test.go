package main

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/server"
)

func TestEachErrorCodeHasItsExitCode(t *testing.T) {
	t.Parallel()
	known := map[lock.Code]int{
		lock.ErrInvalid: exitUsage, lock.ErrHeld: exitNotAcquired, lock.ErrAlreadyDone: exitNotAcquired,
		lock.ErrFrozen: exitNotAcquired, lock.ErrLeaseLost: exitLeaseLost,
		lock.ErrLeaseIDInUse: exitUsage, lock.ErrLeaseInSet: exitUsage,
		lock.ErrSessionLost: exitLeaseLost, lock.ErrSessionIDInUse: exitUsage, lock.ErrTooManyLeases: exitNotAcquired,
		lock.ErrDeadlock: exitNotAcquired, lock.ErrTreeBusy: exitNotAcquired, lock.ErrTreeOverlaps: exitUsage,
		lock.ErrCapacityMismatch: exitUsage, lock.ErrTooManyWaiters: exitNotAcquired, lock.ErrTokenMismatch: exitFailed,
		lock.ErrStaleToken: exitFailed, lock.ErrUnknownToken: exitFailed, lock.ErrVersionMismatch: exitFailed,
		lock.ErrNotFound:   exitFailed,
		lock.ErrKeyMissing: exitNotAllowed, lock.ErrKeyInvalid: exitNotAllowed, lock.ErrKeyExpired: exitNotAllowed,
		lock.ErrRoleMissing: exitNotAllowed, lock.ErrNameNotAllowed: exitNotAllowed, lock.ErrRateLimited: exitNotAcquired,
		lock.ErrUnavailable: exitUnreachable, lock.ErrUnknownOutcome: exitUnreachable, lock.ErrInternal: exitInternal,
		server.ErrNoRoute: exitUsage, server.ErrCrossOrigin: exitNotAllowed, server.ErrMethodNotAllowed: exitFailed,
	}
	for code, want := range known {
		err := fmt.Errorf("wrapped: %w", &lock.Error{Code: code, Reason: "a reason", Holder: "me", Field: "ttl_ms"})
		if got := exitCode(err); got != want {
			t.Errorf("%s: exit code %d, want %d", code, got, want)
		}
		if got := exitCode(explain(err)); got != want {
			t.Errorf("%s, explained: exit code %d, want %d", code, got, want)
		}
	}
	for _, code := range lock.Codes() {
		if _, ok := known[code]; !ok {
			t.Errorf("%s is not in the table of this test", code)
		}
	}
	for want, err := range map[int]error{exitOK: nil, exitFailed: errors.New("anything"), exitUsage: fmt.Errorf("wrapped: %w", usagef("wrong"))} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
	if all := []int{exitNotAcquired, exitLeaseLost, exitNotAllowed, exitNotExecutable, exitNotFound}; !slices.Equal(all,
		[]int{75, 76, 77, 126, 127}) {
		t.Errorf("the exit codes are %v", all)
	}
}
