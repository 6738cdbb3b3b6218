package workload

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/bench/measure"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
)

// runSlack is how much longer than planned a run may take before it is aborted.
const runSlack = time.Minute

// Options set the length of a run.
type Options struct {
	Warm     time.Duration // warm-up, not counted
	Measured time.Duration
}

// Run runs the workload on a started system. Errors are in the result.
func (w Workload) Run(ctx context.Context, s system.System, o Options) result.Run {
	ctx, cancel := context.WithTimeout(ctx, o.Warm+o.Measured+w.settle+runSlack)
	defer cancel()
	r := result.Run{
		System: s.Name(), Title: s.Title(), Workload: w.Name, WorkloadTitle: w.Title,
		Unit: w.Unit, Clients: w.Clients, Paced: w.Paced,
	}
	err := w.drive(ctx, s, o, &r)
	if err == nil && r.Operations == 0 {
		err = errors.New("no operation was completed")
	}
	r.Unsupported = errors.Is(err, system.ErrUnsupported)
	if err != nil {
		r.Error = err.Error()
	}
	return r
}

func (w Workload) drive(ctx context.Context, s system.System, o Options, r *result.Run) error {
	probe, err := measure.Open(ctx, s)
	if err != nil {
		return err
	}
	if loader, ok := s.(system.Loader); ok {
		return errors.Join(w.runLoader(ctx, loader, o, probe, r), probe.Close())
	}
	b := &activeRun{Workload: w, Options: o, probe: probe}
	err = b.remember(s, &b.memory.Before)
	if err == nil {
		err = b.connect(ctx, s)
	}
	if err == nil {
		err = b.run(ctx, s, r)
	}
	err = errors.Join(err, b.close())
	if err == nil && w.crowd {
		r.Memory = &b.memory
		err = errors.Join(pause(ctx, w.settle), b.remember(s, &b.memory.After))
	}
	return errors.Join(err, probe.Close())
}

// remember reads the servers' memory.
func (b *activeRun) remember(s system.System, to *int64) error {
	memory, err := measure.Memory(s.Processes())
	*to = memory[system.Server]
	return err
}

// An activeRun is the state of a run.
type activeRun struct {
	Workload
	Options
	probe   *measure.Probe
	phase   atomic.Int32
	workers []*worker
	fsyncs  measure.LaggedRatio // per operation
	memory  result.Memory
}

func (b *activeRun) connect(ctx context.Context, s system.System) error {
	registry := newLockRegistry()
	for i := range b.Clients {
		client, err := s.Client(ctx)
		if err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
		w := &worker{meter: newMeter(&b.phase), client: client, system: s, number: i, registry: registry}
		b.workers = append(b.workers, w)
	}
	return nil
}

func (b *activeRun) close() error {
	var err error
	for _, w := range b.workers {
		err = errors.Join(err, w.client.Close())
	}
	return err
}

// run runs all jobs and measures meanwhile.
func (b *activeRun) run(ctx context.Context, s system.System, r *result.Run) error {
	jobs, err := b.setUp(ctx)
	if err != nil {
		b.tearDown(jobs)
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, j := range jobs {
		all.Go(func() error { return b.work(ctx, j) })
	}
	var from, to measure.Mark
	all.Go(func() error {
		defer b.phase.Store(finished)
		var err error
		from, to, err = b.measure(ctx, s)
		return err
	})
	if err := all.Wait(); err != nil {
		b.tearDown(jobs)
		return err
	}
	b.sum(r, from, to)
	return nil
}

// setUp creates the jobs and runs their setUp functions.
func (b *activeRun) setUp(ctx context.Context) ([]job, error) {
	all, ctx := errgroup.WithContext(ctx)
	jobs := make([]job, len(b.workers))
	for i, w := range b.workers {
		jobs[i] = b.job(w)
		if jobs[i].setUp != nil {
			all.Go(func() error { return jobs[i].setUp(ctx) })
		}
	}
	return jobs, all.Wait()
}

// work runs the steps of one client until the run is over.
func (b *activeRun) work(ctx context.Context, j job) error {
	for b.phase.Load() != finished {
		if err := j.step(ctx); err != nil {
			return err
		}
	}
	if j.tearDown == nil {
		return nil
	}
	return j.tearDown(ctx)
}

// tearDown tries to release all locks after a failed run, so that the next run finds them free.
func (b *activeRun) tearDown(jobs []job) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all errgroup.Group
	for _, j := range jobs {
		if j.tearDown != nil {
			all.Go(func() error { return j.tearDown(ctx) })
		}
	}
	_ = all.Wait() // the run has failed anyway
}

// measure waits for the warm-up and returns the costs before and after the measurement.
func (b *activeRun) measure(ctx context.Context, s system.System) (from, to measure.Mark, err error) {
	if err := pause(ctx, b.Warm); err != nil {
		return from, to, err
	}
	if from, err = b.probe.Mark(ctx); err != nil {
		return from, to, err
	}
	b.phase.Store(measuring)
	if err := b.waitMeasured(ctx); err != nil {
		return from, to, err
	}
	if err := b.remember(s, &b.memory.During); err != nil {
		return from, to, err
	}
	b.phase.Store(finished)
	to, err = b.probe.Mark(ctx)
	return from, to, err
}

// fsyncReads is how often PostgreSQL's fsync counter is read, at most every fsyncInterval. An idle database must not be
// kept busy by that.
const (
	fsyncReads    = 60
	fsyncInterval = 100 * time.Millisecond
)

// maxFirstOperation bounds the wait for the first operation.
const maxFirstOperation = 20 * time.Second

// waitMeasured waits until the measurement is over: for its planned time, or longer until the first
// operation has completed.
func (b *activeRun) waitMeasured(ctx context.Context) error {
	began, interval := time.Now(), max(fsyncInterval, b.Measured/fsyncReads)
	for time.Since(began) < b.Measured || b.done() == 0 && time.Since(began) < maxFirstOperation {
		if err := pause(ctx, max(time.Millisecond, min(interval, b.Measured-time.Since(began)))); err != nil {
			return err
		}
		n, ok, err := b.probe.Fsyncs(ctx)
		if err != nil {
			return err
		}
		if ok {
			b.fsyncs.Add(n, b.done())
		}
	}
	return nil
}

// done returns the number of completed operations.
func (b *activeRun) done() (sum int64) {
	for _, w := range b.workers {
		sum += w.operations.Load()
	}
	return sum
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
