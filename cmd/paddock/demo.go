package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// storyLimit is how long the demo may take besides the TTL.
const storyLimit = 30 * time.Second

type demoCommand struct {
	serviceFlags

	TTL time.Duration `name:"ttl" default:"1s" help:"TTL of the lease that is slept through."`
}

// Run tells the story of the fencing token as it happens: a worker, which is a
// process, is stopped for longer than its lease lasts, another takes over, the
// first wakes up and writes. It succeeds only if that write was refused.
func (c *demoCommand) Run(ctx context.Context, p *program) error {
	if c.TTL < lock.MinTTL {
		return usagef("--ttl is %v; give %v or more", c.TTL, lock.MinTTL)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.TTL+storyLimit, fmt.Errorf("the story was not over after %v", c.TTL+storyLimit))
	defer cancel()
	locks, err := c.within(lookWithin)
	if err != nil {
		return err
	}
	s := &story{locks: locks, service: c.serviceFlags, ttl: c.TTL, out: p.stdout, name: "demo:" + uuid.NewString()[:8]}
	if err := s.tell(ctx); err != nil {
		return fmt.Errorf("the demo failed: %w", err)
	}
	return nil
}

// A story is one run of the demo. Lock and resource are named alike, and
// nobody else knows the name.
type story struct {
	locks   lock.Service
	service serviceFlags
	ttl     time.Duration
	out     io.Writer
	name    string
}

func (s *story) tell(ctx context.Context) error {
	if _, err := s.locks.Lock(ctx, s.name); err != nil {
		return fmt.Errorf("looking for a service at %s (paddock dev runs one): %w", s.service.URL, err)
	}
	s.say("Two workers, one lock, one resource (both called %s), at %s\n", s.name, s.service.URL)
	a, err := s.startWorker(ctx)
	if err != nil {
		return err
	}
	defer a.close()
	tokenA, err := s.untilFirstWrite(ctx, a)
	if err != nil {
		return err
	}
	if err := s.sleepThrough(ctx, a); err != nil {
		return err
	}
	b, err := s.takeOver(ctx, tokenA)
	if err != nil {
		return err
	}
	if err := s.wake(ctx, a, tokenA, b); err != nil {
		return err
	}
	return s.conclude(ctx, b)
}

// untilFirstWrite reports what A does until it has written, and returns its token.
func (s *story) untilFirstWrite(ctx context.Context, a *worker) (lock.Token, error) {
	for {
		did, err := a.next(ctx)
		if err != nil {
			return 0, err
		}
		s.report(did)
		if did.Refused != "" {
			return 0, errors.New("worker A was refused although nobody else had the lock")
		}
		if did.Wrote > 0 {
			return did.Token, nil
		}
	}
}

// sleepThrough stops A and waits until its lease is over.
func (s *story) sleepThrough(ctx context.Context, a *worker) error {
	if err := a.pause(); err != nil {
		return err
	}
	s.say("A  is paused in the middle of its work (SIGSTOP to process %d), as a long garbage collection might", a.cmd.Process.Pid)
	if err := s.untilFree(ctx); err != nil {
		return err
	}
	s.say("   its lease of %v ends meanwhile, and nobody can tell it", s.ttl)
	return nil
}

// untilFree looks at the lock until its lease is over, and no sooner than that
// can be.
func (s *story) untilFree(ctx context.Context) error {
	for {
		now, err := s.locks.Lock(ctx, s.name)
		if err != nil {
			return err
		}
		if now.State == lock.Free {
			return nil
		}
		soonest := 10 * time.Millisecond
		for _, lease := range now.Leases {
			soonest = max(soonest, lease.Remaining)
		}
		select {
		case <-time.After(soonest):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}
