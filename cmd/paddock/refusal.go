package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// flagOf tells by which argument a field of a request is given.
func flagOf(field string) string {
	return map[string]string{
		"name": "NAME", "lock": "NAME", "lease_id": "--lease-id", "holder": "--holder", "mode": "--shared, --permits",
		"capacity": "--permits", "ttl_ms": "--ttl", "grace_ms": "--grace", "max_hold_ms": "--max-hold", "metadata": "--metadata",
		"wait_ms": "--wait", "fencing_token": "--token", "slot": "--slot", "acquired_at": "--acquired-at", "reason": "--reason",
		"prefix": "--prefix", "state": "--state", "limit": "--limit", "cursor": "--from",
	}[field]
}

// refused returns what the service said, or would say, in the words of the command
// line, with the exit code that it leads to. Other errors it returns as they are.
func refused(err error) error {
	var e *lock.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Code == lock.ErrInvalid && flagOf(e.Field) != "":
		return usagef("%s: %s", flagOf(e.Field), e.Detail)
	case e.Code == lock.ErrHeld && e.Holder != "":
		return &failure{exitNotAcquired, errors.New(heldBy(e) + " Wait longer, with --wait, or try again later.")}
	case e.Code == lock.ErrKeyMissing:
		return &failure{exitNotAllowed, errors.New("the service asks for an API key: put it into PADDOCK_KEY, or into a file and give --key-file")}
	case e.Reason != "":
		return &failure{exitCode(err), fmt.Errorf("%w The reason given: %s", err, legible(e.Reason))}
	}
	return err
}

// heldBy returns a sentence that names the holder of the lock.
func heldBy(e *lock.Error) string {
	text := fmt.Sprintf("not acquired: %s has the lock, for %s more unless it renews", legible(e.Holder), short(e.RetryAfter))
	if e.Ahead > 0 {
		text += fmt.Sprintf("; %d waiting", e.Ahead)
	}
	return text + "."
}

// unlessStopped returns what was refused, in the words of the command line; or, if
// ctx has ended, that the command was stopped before it was done.
func unlessStopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return &failure{exitFailed, fmt.Errorf("stopped before it was done (%w): %w", context.Cause(ctx), err)}
	}
	return refused(err)
}

// checkNotNegative returns a usage error if a duration is below zero.
func checkNotNegative(flag string, d time.Duration) error {
	if d < 0 {
		return usagef("%s is %v; give 0s or more", flag, d)
	}
	return nil
}
