package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

var (
	flagLong = flag.Bool("faults.long", false, "run the long form of every test")
	flagFor  = flag.Duration("faults.for", 0,
		"approximate length of TestNothingIsLostUnderFaults; 0: each nemesis once, or ten minutes in the long form")
	flagSeed = flag.Uint64("faults.seed", 1, "seed of the first round; 0: random")
	flagRace = flag.Bool("faults.race", false, "build the replicas with the race detector")

	flagRestores = repeats{flag.Int("faults.restores", 0, "restores in each variant of TestRestoreBeginsAnEpoch; "+
		"0: 1, or 20 in the long form"), 1, 20}
	flagNoise = flag.Bool("faults.noise", false,
		"full size of the noise in TestNoisyNeighbourCostsNoLease, with limits of the delays")
)

// repeats says how often something is repeated: as a flag says, or as the short or the long form does.
type repeats struct {
	flag        *int
	short, long int
}

func (r repeats) count() int {
	switch {
	case *r.flag > 0:
		return *r.flag
	case *flagLong:
		return r.long
	}
	return r.short
}

// faultsToInject returns how many faults TestNothingIsLostUnderFaults injects.
func faultsToInject() int {
	switch {
	case *flagFor > 0:
		return max(1, int(*flagFor/perFault))
	case *flagLong:
		return int(longFor / perFault)
	}
	return len(allNemeses())
}

// A long run has several rounds, each on its own deployment.
const (
	roundFaults = 90
	roundCalls  = 20_000 // minimum of answered calls, unless it has fewer faults
	perFault    = 4 * time.Second / 3
	longFor     = 10 * time.Minute // in the long form
)

// TestNothingIsLostUnderFaults is described in the package comment.
func TestNothingIsLostUnderFaults(t *testing.T) {
	t.Parallel()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy logs each removed toxic
	b := build(t, *flagRace)
	seed := *flagSeed
	if seed == 0 {
		seed = rand.Uint64N(1_000_000)
	}
	for left := faultsToInject(); left > 0; left -= roundFaults {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runRound(t, b, seed, min(left, roundFaults)) })
		seed++
	}
}

// runRound injects that many faults into a deployment under load, and checks the history.
func runRound(t *testing.T, b builds, seed uint64, faults int) {
	p := newRound(t, deploy(t, b), seed)
	if err := p.checkClocks(); err != nil {
		t.Fatal(err)
	}
	if err := p.underLoad(t.Context(), faults); err != nil {
		t.Errorf("seed %d: %v", seed, err)
	} else if err := p.checkRecovery(t.Context()); err != nil {
		t.Errorf("seed %d: afterwards: %v", seed, err)
	}
	p.verify(t)
}

// A round is a schedule of faults that is carried out on a deployment under load.
type round struct {
	*deployment
	seed     uint64
	recorder *verify.Recorder
	log      func(format string, args ...any)
	began    time.Time
	summary  summary
}

func newRound(t *testing.T, d *deployment, seed uint64) *round {
	return &round{
		deployment: d, seed: seed, recorder: verify.NewRecorder(), log: t.Logf, began: time.Now(),
		summary: summary{seed: seed, injected: map[string]int{}},
	}
}

// prefix begins the names of all locks.
func (p *round) prefix() string { return fmt.Sprint("faults:", p.seed) }

// underLoad runs the workload while that many faults are injected, or more until a full round has enough calls.
func (p *round) underLoad(ctx context.Context, faults int) error {
	o := workload.Options{Prefix: p.prefix(), Seed: p.seed, Subscribers: true, Lulls: p.lulls, Tree: true, Policy: true, Hold: true}
	for _, r := range p.replicas {
		c, err := r.client()
		if err != nil {
			return err
		}
		o.Services = append(o.Services,
			workload.Replica{Via: r.String(), Locks: meteredService{c, p.meter}, Stream: workload.StreamOf(c.Stream)})
	}
	both, ctx := errgroup.WithContext(ctx)
	loading, finish := context.WithCancel(ctx)
	both.Go(func() error {
		stats, err := workload.Run(loading, p.recorder, o)
		p.summary.subscribers = stats.Subscribers
		return err
	})
	both.Go(func() error {
		defer finish()
		return p.runSchedule(ctx, faults)
	})
	return both.Wait()
}

// runSchedule injects each step once the deployment has been under load for a while after the previous one. It
// stops at the first fault that cannot be injected or undone, or from which the service does not recover.
func (p *round) runSchedule(ctx context.Context, faults int) error {
	last, injected, calls := "the beginning", 0, int64(0)
	if faults == roundFaults {
		calls = roundCalls
	}
	for _, s := range schedule(p.seed, 4*faults) {
		rate, err := p.awaitLoad(ctx, last)
		if err != nil {
			return err
		}
		if injected >= faults && p.meter.answered.Load() >= calls {
			return nil
		}
		p.log("%6.1f s, %4d/s: %v", time.Since(p.began).Seconds(), rate, s)
		for _, f := range s {
			p.summary.injected[f.name]++
			injected++
		}
		if err := inParallel(len(s), func(i int) error { return p.inject(ctx, s[i]) }); err != nil {
			return err
		}
		last = s.String()
	}
	return fmt.Errorf("only %d calls were answered during %d faults", p.meter.answered.Load(), injected)
}

// awaitLull starts a lull, in which clients only try a held lock, and returns when it is too late for an
// earlier commit to flush the log.
func (d *deployment) awaitLull(ctx context.Context) {
	const into = 200 * time.Millisecond
	select {
	case d.lulls <- time.Now():
		sleepFor(ctx, into)
	case <-ctx.Done():
	}
}

// awaitLoad waits until the deployment is under load again, and returns the number of answers per second.
func (p *round) awaitLoad(ctx context.Context, after string) (int64, error) {
	began := time.Now()
	rate, err := p.meter.awaitLoad(ctx)
	if err != nil {
		return 0, fmt.Errorf("after %s: %w", after, err)
	}
	if took := time.Since(began); took > p.summary.longest {
		p.summary.longest, p.summary.after = took, after
	}
	return rate, nil
}

// inject injects the fault, and undoes it when its duration is over or ctx ends.
func (p *round) inject(ctx context.Context, f fault) error {
	if f.awaitsLull() {
		p.awaitLull(ctx)
	}
	defer p.recorder.MarkFault(f.String())()
	undo, err := f.inject(ctx, p.deployment, f)
	over := time.NewTimer(f.duration)
	defer over.Stop()
	select {
	case <-over.C:
	case <-ctx.Done():
	}
	if undo != nil {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*stepTimeout)
		defer cancel()
		err = errors.Join(err, undo(bounded))
	}
	if err != nil {
		return fmt.Errorf("%v: %w", f, err)
	}
	return nil
}

// checkRecovery checks that everything is as it was before the first fault.
func (p *round) checkRecovery(ctx context.Context) error {
	began := time.Now()
	if err := p.checkReplicasServe(ctx, p.prefix()); err != nil {
		return err
	}
	err := errors.Join(p.revokeSuspects(ctx), p.awaitCleanup(ctx))
	p.summary.settled = time.Since(began)
	return err
}
