package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// newRNG returns a source of random numbers for one purpose. What one actor draws
// does not depend on what others do.
func newRNG(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // a hash takes everything
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// randomDuration returns a duration that is positive and at most d. It is of nanoseconds, so
// that hardly any two things happen at the same instant.
func randomDuration(rnd *rand.Rand, d time.Duration) time.Duration {
	return 1 + time.Duration(rnd.Int64N(int64(d)))
}

func oneOf[T any](rnd *rand.Rand, these ...T) T { return these[rnd.IntN(len(these))] }

// occurs is whether what has that probability does.
func occurs(rnd *rand.Rand, probability float64) bool { return rnd.Float64() < probability }
