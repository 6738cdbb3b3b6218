package sim_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/test/sim"
)

// repeatedSeeds is how many seeds are played twice.
const repeatedSeeds = 50

func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	t.Parallel()
	for _, v := range append(sim.Variants(), sim.PaddockAllGuards()) {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			n := uint64(repeatedSeeds)
			if v.Failure != "" {
				n /= 5
			}
			each(t, n, func(t *testing.T, seed uint64) {
				one, other := play(t, seed, v), play(t, seed, v)
				if one.Trace.Hash() != other.Trace.Hash() {
					t.Errorf("two runs of seed %d differ:%s", seed, firstDifference(one, other))
				}
			})
		})
	}
}

// firstDifference returns where two traces differ first.
func firstDifference(one, other sim.Outcome) string {
	a, b := strings.Split(one.Trace.String(), "\n"), strings.Split(other.Trace.String(), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return "\n" + strings.Join(slices.Concat(a[max(0, i-10):i], []string{"once: " + a[i], "then: " + b[i]}), "\n")
		}
	}
	return " by less than a millisecond, or in their lengths"
}

func TestOtherSeedsGiveOtherTraces(t *testing.T) {
	t.Parallel()
	seen := map[string]uint64{}
	for seed := range uint64(repeatedSeeds) {
		hash := play(t, seed, sim.Majority()).Trace.Hash()
		if before, ok := seen[hash]; ok {
			t.Errorf("seeds %d and %d have the same trace", before, seed)
		}
		seen[hash] = seed
	}
}
