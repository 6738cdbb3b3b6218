package main

import (
	"context"
	"fmt"

	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

type tokenCommand struct {
	Verify tokenVerifyCommand `cmd:"" help:"Show whether a fencing token is current."`
}

func (tokenCommand) Help() string {
	return `A fencing token is the number of a lease: each grant of a lock has a greater one than the grants before.

    paddock token verify jobs:nightly 41`
}

type tokenVerifyCommand struct {
	Name  string `arg:"" complete:"lock" help:"The lock's name, such as jobs:nightly."`
	Token int64  `arg:"" help:"The fencing token."`
	serviceFlags
	retryFlags
	outputFlags

	Slot *int `placeholder:"N" unset:"any" help:"The slot that the lease of the token must have."`
}

func (tokenVerifyCommand) Help() string {
	return `Prints the status of the token: current, its lease is active or in its grace; ended, it is the newest one, and its
lease has ended; stale, a newer one was granted; or unknown, it was never granted for this lock. Exit code 0 means
current, and 76 another status.

    paddock token verify jobs:nightly 41

The answer is of one instant; the token may be stale a moment later. To refuse the writes of a process that was paused,
check the token where the write lands: paddock fence --help.`
}

// Run prints the status of the token. It fails if the token is not current.
func (c *tokenVerifyCommand) Run(ctx context.Context, p *program) error {
	if c.Token < 1 {
		return usagef("TOKEN is %d; give a fencing token, which is 1 or more", c.Token)
	}
	v, err := lock.Verify{Name: c.Name, Token: lock.Token(c.Token), Slot: c.Slot}.Resolve()
	if err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, func(ctx context.Context) (lock.Verification, error) { return locks.VerifyToken(ctx, v) })
	if err != nil {
		return err
	}
	if err := p.print(c.Output, showVerification(found)); err != nil || found.Status == lock.Current {
		return err
	}
	return &failure{exitLeaseLost, fmt.Errorf("the token %d of %s is %s", found.Token, found.Name, statusText(found))}
}

// statusText returns what the status of a token means, for one that is not current.
func statusText(v lock.Verification) string {
	switch v.Status {
	case lock.Ended:
		return "not current: its lease has ended"
	case lock.Stale:
		return fmt.Sprintf("stale: the newest one is %d", v.Newest)
	}
	return "unknown: it was not granted for this lock; check the lock, the token, the slot and the service"
}

// showVerification returns the output for the status of a token.
func showVerification(v lock.Verification) output {
	return output{wire: wire.VerificationOf(v), names: []string{v.Name}, table: func(t *table) {
		t.field("LOCK", v.Name)
		t.field("TOKEN", token(v.Token))
		t.field("STATUS", string(v.Status))
		t.field("NEWEST TOKEN", token(v.Newest))
		t.field("CHECKED", local(v.CheckedAt))
		if v.Status == lock.Current {
			t.field("LEFT", short(v.Remaining))
		}
	}}
}
