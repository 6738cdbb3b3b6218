package sim_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/paddock-lock/paddock/test/sim"
)

var (
	oneSeed = flag.Int64("sim.seed", -1, "play this seed only, and print its trace")
	seeds   = flag.Uint64("sim.seeds", 300, "how many seeds to play against Paddock, from 0 on")
	update  = flag.Bool("sim.update", false, "rewrite the blocks of docs/simulation.md")
)

// play plays the seed with that way to lock.
func play(t *testing.T, seed uint64, v sim.Variant) (o sim.Outcome) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { o = sim.Run(seed, v) })
	return o
}

// each does something with each seed below n, as many at once as there are processors.
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

// TestNothingGoesWrongUnderTrouble plays seeds against the rules of package lock and the
// guards of package guard. One is played again, and its trace shown, with
//
//	go test ./test/sim -run TestNothingGoesWrongUnderTrouble -sim.seed=17 -v
func TestNothingGoesWrongUnderTrouble(t *testing.T) {
	t.Parallel()
	if *oneSeed >= 0 {
		o := play(t, uint64(*oneSeed), sim.PaddockAllGuards())
		t.Logf("%v\n%s%v", o.Plan, o.Trace, o.Found)
		expectNoFailures(t, o)
		return
	}
	each(t, *seeds, func(t *testing.T, seed uint64) {
		if o := play(t, seed, sim.PaddockAllGuards()); len(o.Failures()) > 0 {
			t.Logf("%v\n%s", o.Plan, o.Trace)
			expectNoFailures(t, o)
		}
	})
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
