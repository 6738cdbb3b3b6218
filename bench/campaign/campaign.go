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

// A Campaign is what to measure, and where.
type Campaign struct {
	Systems   []system.System
	Workloads []workload.Workload
	Rounds    int
	workload.Options
	Part string // what the runs have in common
	Dir  string // for what the servers keep; users other than ours must be able to enter it

	// Done is told of each run.
	Done func(result.Run)
	// Missing is told of each system that cannot be started because it is not installed.
	Missing func(system.System, error)
}

// Run measures. The systems are started first, and stopped in the end.
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
				r.Part, r.Round = c.Part, round+1
				c.Done(r)
			}
		}
	}
	return nil
}

// start starts all that are installed, and returns those that were, also those that it failed
// with.
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
