package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// usualKillAfter is how long a command may take to end when nothing is said.
	usualKillAfter = 5 * time.Second
	// longestSlack is the most time that is kept for noticing a loss, and for what
	// was killed to be gone. It is a tenth of the TTL where that is less.
	longestSlack = time.Second
)

type runCommand struct {
	Name    string   `arg:"" help:"The lock's name, such as jobs:nightly."`
	Command []string `arg:"" passthrough:"partial" help:"The command and its arguments, best after --."`
	serviceFlags
	leaseFlags
	retryFlags

	KillAfter *time.Duration `placeholder:"DURATION" help:"How long the command may take to end once it is told to, before it is killed; 0s to kill it at once (5s, or as much as the TTL allows)."`
}

// Run runs the command while it holds the lock. Its error has the exit code of the
// command, unless the lock was not acquired or the lease was lost.
func (c *runCommand) Run(ctx context.Context, p *program) error {
	said := newVoice(p.stderr)
	defer said.finish()
	o, err := c.options(said)
	if err != nil {
		return err
	}
	locks, err := c.open()
	if err != nil {
		return err
	}
	words := c.words()
	if len(words) == 0 {
		return usagef("run what? Give the command after --, as in paddock run %s -- make", c.Name)
	}
	path, err := lookUp(words[0], p.env)
	if err != nil {
		return err
	}
	o.OnRetry = p.noteRetry()
	heard := listen()
	defer heard.stop()
	lease, err := c.acquire(ctx, locks, o, heard, enclosingLease(p.env, c.URL))
	if err != nil {
		return err
	}
	j := &job{lease: lease, killAfter: o.Margin - slack(c.TTL), heard: heard, said: said}
	err = j.do(path, words, environmentOf(lease, o.Holder, c.URL))
	return j.conclude(context.WithoutCancel(ctx), err)
}

// words returns the command and its arguments. Of those --, the first is ours.
func (c *runCommand) words() []string {
	if c.Command[0] == "--" {
		return c.Command[1:]
	}
	return c.Command
}

// options returns what lease is wanted, with a margin in which the command can be
// told to end, and be killed.
func (c *runCommand) options(said *voice) (guard.Options, error) {
	o, err := c.leaseFlags.options(c.Name)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return o, err
	}
	longest := (c.TTL/3 - slack(c.TTL)).Truncate(time.Millisecond)
	killAfter := min(usualKillAfter, longest)
	if c.KillAfter != nil {
		killAfter = *c.KillAfter
	}
	if killAfter < 0 || killAfter > longest {
		return o, usagef("--kill-after is %v; with a TTL of %v give 0s to %v: the command must be gone before the lease "+
			"can end, and two thirds of the TTL are for renewals. With a longer --ttl it may take longer", killAfter, c.TTL, longest)
	}
	o.Holder = cmp.Or(c.Holder, thisProcess())
	o.Retry, o.Margin, o.OnState = c.forGuard(), killAfter+slack(c.TTL), said.states(c.Name)
	return o, nil
}

// slack is the part of the margin that is not the command's.
func slack(ttl time.Duration) time.Duration { return min(ttl/10, longestSlack) }

// acquire takes the lock, unless a signal comes first: then nothing is left behind,
// as far as the service can be told. A second signal kills, as is usual.
func (c *runCommand) acquire(ctx context.Context, locks lock.Service, o guard.Options, heard *ears, around enclosing) (*guard.Lease, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // which ends by the same signals
	defer cancel()
	var lease *guard.Lease
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		lease, err = guard.Acquire(ctx, locks, c.Name, o)
	}()
	s, stopped := heard.before(done)
	if !stopped {
		return lease, around.refused(c.Name, err)
	}
	heard.stop()
	cancel()
	<-done
	why := fmt.Errorf("stopped by %s before it had %s", unix.SignalName(s), c.Name)
	if err == nil {
		if err = lease.Release(ctx); err != nil {
			why = fmt.Errorf("%w; a lease that came meanwhile ends with its TTL of %v: %w", why, c.TTL, err)
		}
	}
	return nil, &failure{exitSignalled + int(s), why}
}
