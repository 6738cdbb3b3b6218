package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/printable"
	"github.com/paddock-lock/paddock/cmd/paddock/internal/supervise"
	"github.com/paddock-lock/paddock/internal/when"
	"github.com/paddock-lock/paddock/lock"
)

// The onceFlags say for how long the work of a command is done.
type onceFlags struct {
	OncePer string        `placeholder:"PERIOD" complete:"minute,hour,day,week,month" unset:"as often as paddock runs" help:"Run the command once per PERIOD on all machines together: minute, hour, day, week or month of the calendar, or a duration since the command began."`
	TZ      string        `name:"tz" placeholder:"ZONE" unset:"UTC" help:"Time zone of the calendar of --once-per, such as Europe/Berlin."`
	AtLeast time.Duration `default:"0s" help:"With --once-per: how long after it began the command is not run again at least, also in the next period. Choose more than the clocks of the machines differ."`
}

// closing returns for how long the work of the locks is done, zero for not at all, or a usage error.
func (f onceFlags) closing(members []lock.Member) (lock.Closing, error) {
	c := lock.Closing{For: f.AtLeast, Zone: f.TZ}
	switch period := lock.Period(f.OncePer); {
	case f.OncePer == "" && (f.TZ != "" || f.AtLeast != 0):
		return c, usagef("--tz and --at-least belong to --once-per; give that, or leave them out")
	case f.OncePer == "":
		return c, nil
	case len(members) > 1 || members[0].Mode > lock.Exclusive:
		return c, usagef("--once-per is for one lock in the mode exclusive; give one NAME, and neither --shared nor --capacity nor --permits")
	case slices.Contains(lock.Periods(), period):
		c.Period = period
	case f.TZ != "":
		return c, usagef("--tz is for --once-per minute, hour, day, week or month; leave it out: a duration has no time zone")
	default:
		d, err := when.Duration(f.OncePer)
		if err != nil || d <= 0 {
			return c, usagef("--once-per is %q; give minute, hour, day, week or month, or a duration such as 23h", f.OncePer)
		}
		c.For = max(d, f.AtLeast)
	}
	_, err := lock.Release{Locks: []string{"a"}, LeaseID: lock.LeaseID(uuid.New()), Closed: c}.Resolve()
	return c, explain(err)
}

// doneText says who has done the work of a closed lock, and when.
func doneText(e *lock.Error) string {
	holder := "another client"
	if e.Holder != "" {
		holder = printable.Text(e.Holder)
	}
	return fmt.Sprintf("%s has done the work at %s, and it counts as done for another %s", holder, local(e.DoneAt), short(e.RetryAfter))
}

// A doneLease is a lease whose work is done: its release closes the lock as --once-per says.
type doneLease struct {
	*guard.Lease
	err error // of the release
}

// Release implements releaser.
func (l *doneLease) Release(ctx context.Context) error {
	l.err = l.ReleaseDone(ctx)
	return l.err
}

// isDone reports whether the command has succeeded. One that was told to stop may have done a part of the work.
func isDone(r supervise.Result, notStarted error) bool {
	return notStarted == nil && r.Lost == nil && !r.Asked && r.ExitCode() == exitOK
}
