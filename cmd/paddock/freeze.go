package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/internal/wire"
	"github.com/paddock-lock/paddock/lock"
)

// drainEvery is how often --drain asks which leases are left.
const drainEvery = 500 * time.Millisecond

type freezeCommand struct {
	Scope string `arg:"" complete:"scope" help:"The lock's name, or a prefix of names that ends with a colon, such as billing:."`
	serviceFlags
	outputFlags

	Reason  string        `required:"" placeholder:"TEXT" help:"Why. Refused clients and the events show it."`
	For     time.Duration `unset:"until paddock thaw" help:"How long the freeze lasts."`
	Drain   bool          `help:"Wait until no lease of the locks is left."`
	Timeout time.Duration `unset:"as long as the freeze lasts" help:"With --drain: how long to wait. The freeze lasts longer."`
}

func (freezeCommand) Help() string {
	return `Stops new grants of a lock, or of all locks below a prefix, on all replicas: once it returns, none is granted
until the freeze ends. Leases can still be renewed and released. Waiters keep their places. Freezing the same scope
again replaces the reason and the end.

Wait until all work below billing: has ended, migrate, and let it go on:

    paddock freeze billing: --drain --for 30m --reason "moving to the new schema" &&
      ./migrate && paddock thaw billing:

With --drain it prints on standard error what is left. Exit code 75 means that leases are left when the time is over, or
that the freeze ended before: do not begin then. The key needs the role admin for all of the locks.`
}

func (c *freezeCommand) Run(ctx context.Context, p *program) error {
	if c.Timeout != 0 && !c.Drain {
		return usagef("--timeout belongs to --drain; give that, or leave it out")
	}
	r, err := lock.FreezeRequest{Scope: lock.Scope(c.Scope), Reason: c.Reason, For: c.For}.Resolve()
	if err != nil {
		return explain(err)
	}
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	status, err := locks.Freeze(ctx, r)
	if err == nil && c.Drain {
		status, err = c.drain(ctx, p, locks, status)
	}
	if err != nil {
		return explainUnlessStopped(ctx, err)
	}
	return p.print(c.Output, output{wire: wire.FreezeStatusOf(status), names: []string{string(status.Scope)}, table: func(s *table) {
		s.field("FROZEN", string(status.Scope))
		s.field("REASON", status.Reason)
		s.field("BY", cmp.Or(status.By, none))
		s.field("SINCE", local(status.FrozenAt))
		s.field("UNTIL", freezeEnd(&status.Freeze))
		s.field("LEASES LEFT", fmt.Sprint(status.Leases))
	}})
}

// drain waits until no lease is left.
func (c *freezeCommand) drain(ctx context.Context, p *program, locks paddock.Service, s lock.FreezeStatus) (lock.FreezeStatus, error) {
	until := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		until, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for reported := 0; s.Leases > 0; {
		if s.Leases != reported {
			reported = s.Leases
			fmt.Fprintf(p.stderr, "paddock: %s\n", c.left(until, locks, s.Leases))
		}
		select {
		case <-tick.C:
		case <-until.Done():
		}
		next, err := retry(until, p.log, noLimit, func(ctx context.Context) (lock.FreezeStatus, error) {
			return locks.Frozen(ctx, s.Scope)
		})
		switch {
		case ctx.Err() != nil:
			return s, fmt.Errorf("%s stays frozen; paddock thaw %s ends that", s.Scope, s.Scope)
		case until.Err() != nil:
			return s, &failure{exitNotAcquired, fmt.Errorf("not drained in %v: %s. %s stays frozen; freeze it again to wait "+
				"longer, take the leases away with paddock revoke, or give up with paddock thaw %s", c.Timeout, c.left(ctx, locks, s.Leases), s.Scope, s.Scope)}
		case errors.Is(err, lock.ErrNotFound), err == nil && !next.FrozenAt.Equal(s.FrozenAt):
			return s, &failure{exitNotAcquired, fmt.Errorf("not drained: the freeze of %s has ended or was replaced, with %s. "+
				"Freeze it again, for longer", s.Scope, leasesLeft(s.Leases))}
		case err != nil:
			return s, err
		}
		s = next
	}
	return s, nil
}

func leasesLeft(n int) string {
	if n == 1 {
		return "1 lease left"
	}
	return fmt.Sprintf("%d leases left", n)
}

// maxLeft is how many of the leases that are left are named.
const maxLeft = 3

// left says how many leases are left, and which.
func (c *freezeCommand) left(ctx context.Context, locks paddock.Service, n int) string {
	text := leasesLeft(n)
	page, err := locks.Locks(ctx, paddock.LockQuery{Prefix: c.Scope, Sort: paddock.ByEnding, Limit: paddock.MaxLimit})
	if err != nil {
		return text // the number is what counts
	}
	var named []string
	for _, l := range page.Items {
		if !lock.Scope(c.Scope).Covers(l.Name) {
			continue
		}
		for _, h := range l.Leases {
			if len(named) < maxLeft {
				named = append(named, fmt.Sprintf("%s of %s (%s)", l.Name, h.Holder, remaining(h)))
			}
		}
	}
	if len(named) > 0 {
		text += ": " + printable.Text(strings.Join(named, ", "))
	}
	if len(named) < n {
		text += ", …"
	}
	return text
}

type thawCommand struct {
	Scope string `arg:"" complete:"freeze" help:"The scope of the freeze, as it was given to paddock freeze."`
	serviceFlags
}

func (thawCommand) Help() string {
	return `Ends a freeze: waiters are granted the locks in their order. If there is none it says so, and succeeds.

    paddock thaw billing:`
}

func (c *thawCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	scope := lock.Scope(c.Scope)
	_, err = locks.Frozen(ctx, scope) // the answer to the removal does not tell: it may be a repeated one
	missing := errors.Is(err, lock.ErrNotFound)
	if err == nil || missing {
		err = locks.Thaw(ctx, lock.ThawRequest{Scope: scope})
	}
	if err == nil && missing {
		fmt.Fprintf(p.stderr, "%s was not frozen.\n", printable.Text(c.Scope))
	}
	return explainUnlessStopped(ctx, err)
}

type freezesCommand struct {
	serviceFlags
	retryFlags
	outputFlags
}

func (freezesCommand) Help() string {
	return `Prints the freezes in force, ordered by scope.

    paddock freezes`
}

func (c *freezesCommand) Run(ctx context.Context, p *program) error {
	locks, err := c.clientWithTimeout(callTimeout)
	if err != nil {
		return err
	}
	found, err := read(ctx, p, c.retryFlags, locks.Freezes)
	if err != nil {
		return err
	}
	scopes := namesIn(found, func(f lock.Freeze) string { return string(f.Scope) })
	return p.print(c.Output, output{wire: wire.FreezeListOf(found).Freezes, names: scopes, empty: "No freezes found.", table: func(s *table) {
		s.head("SCOPE", "BY", "SINCE", "UNTIL", "REASON")
		for _, f := range found {
			s.row(string(f.Scope), cmp.Or(f.By, none), local(f.FrozenAt), freezeEnd(&f), f.Reason)
		}
	}})
}

// freezeEnd returns until when the freeze lasts.
func freezeEnd(f *lock.Freeze) string {
	if f.Until.IsZero() {
		return "paddock thaw " + string(f.Scope)
	}
	return local(f.Until)
}

// frozenText says who has frozen the lock, why, until when, and what to do.
func frozenText(e *lock.Error) string {
	who, until := "an operator", "The freeze has no end; an operator ends it with paddock thaw."
	if e.FrozenBy != "" {
		who += " (key " + e.FrozenBy + ")"
	}
	if !e.FrozenUntil.IsZero() {
		until = fmt.Sprintf("The freeze ends in %s, at %s, or before with paddock thaw.", short(e.RetryAfter), local(e.FrozenUntil))
	}
	return printable.Text(fmt.Sprintf(notAcquired+"%s has frozen the lock: %s. %s Wait with --wait, or try again later.",
		who, strings.TrimSuffix(e.Reason, "."), until))
}

// whyShut returns the rows that say why no client is granted the lock, none if it is neither closed nor frozen.
func whyShut(l lock.Lock) (rows [][]string) {
	if c := l.Closed; c != nil {
		rows = append(rows, []string{"CLOSED", fmt.Sprintf("until %s: %s did the work, done at %s", local(c.Until), cmp.Or(c.Holder, "another client"), local(c.At))})
	}
	if f := l.Frozen; f != nil {
		by := ""
		if f.By != "" {
			by = " by key " + f.By
		}
		rows = append(rows, []string{"FROZEN", fmt.Sprintf("until %s%s: %s", freezeEnd(f), by, f.Reason)})
	}
	return rows
}

// shutText returns what whyShut does as one cell of a list.
func shutText(l lock.Lock) string {
	switch {
	case l.Frozen != nil:
		return "frozen until " + freezeEnd(l.Frozen)
	case l.Closed != nil:
		return "done, closed until " + local(l.Closed.Until)
	}
	return none
}
