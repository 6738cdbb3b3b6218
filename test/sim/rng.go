package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// newRNG returns a random number generator for one purpose. What one actor draws does not depend on what others draw.
func newRNG(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(purpose)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// randomDuration returns a positive duration of at most d, in nanoseconds, so that hardly any two events coincide.
func randomDuration(rnd *rand.Rand, d time.Duration) time.Duration {
	return 1 + time.Duration(rnd.Int64N(int64(d)))
}

func oneOf[T any](rnd *rand.Rand, these ...T) T { return these[rnd.IntN(len(these))] }

// occurs reports whether an event of that probability occurs.
func occurs(rnd *rand.Rand, probability float64) bool { return rnd.Float64() < probability }
