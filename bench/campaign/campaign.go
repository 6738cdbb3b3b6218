package campaign

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/bench/workload"
)

// A Campaign says what to measure and where.
type Campaign struct {
	Systems   []system.System
	Workloads []workload.Workload
	Rounds    int
	workload.Options
	Dir string // for the servers' data; other users must be able to enter it

	// Done is called after each run.
	Done func(result.Run)
	// Missing is called for each system that is not installed.
	Missing func(system.System, error)
}

// Run starts the systems, measures them, and stops them.
func (c Campaign) Run(ctx context.Context) (err error) {
	started, err := c.start(ctx)
	defer func() { err = errors.Join(err, stop(started)) }()
	if err != nil {
		return err
	}
	for round := range c.Rounds {
		for _, w := range c.Workloads {
			for _, s := range started {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				r := w.Run(ctx, s, c.Options)
				r.Round = round + 1
				c.Done(r)
			}
		}
	}
	return nil
}

// start starts all installed systems. It returns those that it started or failed to start, so that
// they can be stopped.
func (c Campaign) start(ctx context.Context) ([]system.System, error) {
	var started []system.System
	for _, s := range c.Systems {
		dir := filepath.Join(c.Dir, s.Name())
		if err := os.Mkdir(dir, 0o755); err != nil {
			return started, err
		}
		err := s.Start(ctx, dir)
		if errors.Is(err, system.ErrMissing) {
			c.Missing(s, errors.Join(err, s.Stop()))
			continue
		}
		started = append(started, s)
		if err != nil {
			return started, fmt.Errorf("starting %s: %w", s.Title(), err)
		}
	}
	return started, nil
}

func stop(started []system.System) error {
	var err error
	for _, s := range slices.Backward(started) {
		err = errors.Join(err, s.Stop())
	}
	return err
}
