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

// slack is how much longer than it should a run may take before it is given up.
const slack = time.Minute

// Options say how long a run takes.
type Options struct {
	Warm     time.Duration // what is not counted
	Measured time.Duration
}

// Run drives a system that was started. The result says what went wrong, if anything did.
func (w Workload) Run(ctx context.Context, s system.System, o Options) result.Run {
	ctx, cancel := context.WithTimeout(ctx, o.Warm+o.Measured+slack)
	defer cancel()
	r := result.Run{System: s.Name(), Title: s.Title(), Workload: w.Name, WorkloadTitle: w.Title, Unit: w.Unit, Clients: w.Clients, Paced: w.Paced}
	err := w.drive(ctx, s, o, &r)
	if err == nil && r.Operations == 0 {
		err = errors.New("nothing was done")
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
		return errors.Join(w.loaded(ctx, loader, o, probe, r), probe.Close())
	}
	b := &bout{Workload: w, Options: o, probe: probe}
	err = b.connect(ctx, s)
	if err == nil {
		err = b.run(ctx, r)
	}
	return errors.Join(err, b.close(), probe.Close())
}

// A bout is a run that goes on.
type bout struct {
	Workload
	Options
	probe   *measure.Probe
	phase   atomic.Int32
	workers []*worker
	fsyncs  measure.Lumps // for each operation
}

func (b *bout) connect(ctx context.Context, s system.System) error {
	field := newField()
	for i := range b.Clients {
		client, err := s.Client(ctx)
		if err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
		b.workers = append(b.workers, &worker{meter: newMeter(&b.phase), client: client, system: s, number: i, field: field})
	}
	return nil
}

func (b *bout) close() error {
	var err error
	for _, w := range b.workers {
		err = errors.Join(err, w.client.Close())
	}
	return err
}

// run has all of them work, and measures meanwhile.
func (b *bout) run(ctx context.Context, r *result.Run) error {
	jobs, err := b.begin(ctx)
	if err != nil {
		b.abandon(jobs)
		return err
	}
	all, ctx := errgroup.WithContext(ctx)
	for _, j := range jobs {
		all.Go(func() error { return b.work(ctx, j) })
	}
	var from, to measure.Mark
	all.Go(func() error {
		defer b.phase.Store(over)
		var err error
		from, to, err = b.watch(ctx)
		return err
	})
	if err := all.Wait(); err != nil {
		b.abandon(jobs)
		return err
	}
	b.sum(r, from, to)
	return nil
}

// begin has them all do what comes before the first turn.
func (b *bout) begin(ctx context.Context) ([]job, error) {
	all, ctx := errgroup.WithContext(ctx)
	jobs := make([]job, len(b.workers))
	for i, w := range b.workers {
		jobs[i] = b.job(w)
		if jobs[i].begin != nil {
			all.Go(func() error { return jobs[i].begin(ctx) })
		}
	}
	return jobs, all.Wait()
}

// work does the turns of one client until the run is over.
func (b *bout) work(ctx context.Context, j job) error {
	for b.phase.Load() != over {
		if err := j.turn(ctx); err != nil {
			return err
		}
	}
	if j.end == nil {
		return nil
	}
	return j.end(ctx)
}

// abandon gives back what can be, after a run that failed, so that the next finds nothing held.
func (b *bout) abandon(jobs []job) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var all errgroup.Group
	for _, j := range jobs {
		if j.end != nil {
			all.Go(func() error { return j.end(ctx) })
		}
	}
	_ = all.Wait() // that it failed is known
}

// watch lets the warm-up pass, and returns what had been used up before and after what is
// measured.
func (b *bout) watch(ctx context.Context) (from, to measure.Mark, err error) {
	if err := pause(ctx, b.Warm); err != nil {
		return from, to, err
	}
	if from, err = b.probe.Mark(ctx); err != nil {
		return from, to, err
	}
	b.phase.Store(measuring)
	if err := b.follow(ctx); err != nil {
		return from, to, err
	}
	b.phase.Store(over)
	to, err = b.probe.Mark(ctx)
	return from, to, err
}

// look is how often what PostgreSQL tells of its fsyncs is read.
const look = 100 * time.Millisecond

// longest is how long to wait for the first operation, at the most.
const longest = 20 * time.Second

// follow lets pass what is measured: the time that it is to take, or more until something was
// done.
func (b *bout) follow(ctx context.Context) error {
	began := time.Now()
	for time.Since(began) < b.Measured || b.done() == 0 && time.Since(began) < longest {
		if err := pause(ctx, max(time.Millisecond, min(look, b.Measured-time.Since(began)))); err != nil {
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

// done is how many operations there have been.
func (b *bout) done() (sum int64) {
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
