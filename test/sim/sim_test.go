package sim_test

import (
	"flag"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/paddock-lock/paddock/test/sim"
)

var (
	oneSeed = flag.Int64("sim.seed", -1, "play this seed only, and print its trace")
	seeds   = flag.Uint64("sim.seeds", 300, "how many seeds to play against Paddock, from 0 on; make soak plays 10,000")
	update  = flag.Bool("sim.update", false, "rewrite the blocks of docs/simulation.md")
)

// play plays the seed with the variant.
func play(t *testing.T, seed uint64, v sim.Variant) (o sim.Outcome) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { o = sim.Run(seed, v) })
	return o
}

// each calls do for each seed below n, in as many goroutines as there are processors.
func each(t *testing.T, n uint64, do func(t *testing.T, seed uint64)) {
	t.Helper()
	at := uint64(runtime.GOMAXPROCS(0))
	for first := range at {
		t.Run(fmt.Sprintf("seeds %d, %d and so on", first, first+at), func(t *testing.T) {
			t.Parallel()
			for seed := first; seed < n && !t.Failed(); seed += at {
				do(t, seed)
			}
		})
	}
}

// TestPaddockHoldsUnderFaults plays seeds against the rules of package lock and the guards of package guard. To play
// one seed again and print its trace:
//
//	go test -C test ./sim -run TestPaddockHoldsUnderFaults -sim.seed=17 -v
func TestPaddockHoldsUnderFaults(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		o := play(t, uint64(*oneSeed), sim.PaddockAllGuards())
		t.Logf("%v\n%s%v", o.Plan, o.Trace, o.Found)
		expectNoFailures(t, o)
		return
	}
	var sets atomic.Int64
	t.Run("runs", func(t *testing.T) {
		each(t, *seeds, func(t *testing.T, seed uint64) {
			o := play(t, seed, sim.PaddockAllGuards())
			sets.Add(int64(o.HeldSets))
			if len(o.Failures()) > 0 {
				t.Logf("%v\n%s", o.Plan, o.Trace)
				expectNoFailures(t, o)
			}
		})
	})
	if sets.Load() < int64(*seeds) {
		t.Errorf("only %d times did a worker have two locks together in %d runs", sets.Load(), *seeds)
	}
	t.Logf("workers had two locks together %d times", sets.Load())
}

func expectNoFailures(t *testing.T, o sim.Outcome) {
	t.Helper()
	if o.Held < o.Plan.Survivors() {
		t.Errorf("seed %d: %d workers that live on had the lock %d times", o.Plan.Seed, o.Plan.Survivors(), o.Held)
	}
	for _, v := range o.Failures() {
		t.Errorf("seed %d, %v: %s: %s", o.Plan.Seed, v.At, v.Kind, v.Text)
	}
}

// TestDeadWorkerHoldsNothingForever plays runs in which a worker dies while it has the lock. That its lease ends, and
// that the others are served, is among the checks of every run; here it is made sure that such runs exist.
func TestDeadWorkerHoldsNothingForever(t *testing.T) {
	t.Parallel()
	var died atomic.Int64
	t.Run("runs", func(t *testing.T) {
		each(t, seedsPerVariant, func(t *testing.T, seed uint64) {
			o := play(t, seed, sim.Paddock())
			died.Add(int64(o.DiedHolding))
			expectNoFailures(t, o)
		})
	})
	if died.Load() < seedsPerVariant/20 {
		t.Errorf("%d workers died while they had the lock in %d runs; want more", died.Load(), seedsPerVariant)
	}
	t.Logf("%d workers died while they had the lock", died.Load())
}
