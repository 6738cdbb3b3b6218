package faults_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

var (
	flagFor  = flag.Duration("faults.for", defaultLength(), "for how long to break things, about; or $PADDOCK_FAULTS_FOR")
	flagSeed = flag.Uint64("faults.seed", 0, "what the schedule of the first round is drawn from; 0: by chance")
	flagRace = flag.Bool("faults.race", false, "whether the race detector is to watch the replicas, too")

	flagRestores = flag.Int("faults.restores", 2, "how often TestARestoreIsNoticed restores the database in each variant")
	flagNoise    = flag.Bool("faults.noise", false, "make the noise of TestANoisyNeighbourIsBorne in full size, and limit the delay of renewals")
)

// defaultLength is for how long to break things if no flag says so.
func defaultLength() time.Duration {
	text := os.Getenv("PADDOCK_FAULTS_FOR")
	if text == "" {
		return 20 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(fmt.Sprintf("PADDOCK_FAULTS_FOR: %v", err))
	}
	return d
}

// A long run is one of rounds, each on a deployment of its own.
const (
	roundFaults = 90
	roundCalls  = 20_000 // that are answered, at the least
	perFault    = 4 * time.Second / 3
)

// TestNothingIsLostUnderFaults is the run that the package's comment tells of.
func TestNothingIsLostUnderFaults(t *testing.T) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // or toxiproxy tells of each toxic that it takes away
	b := build(t, *flagRace)
	seed := *flagSeed
	if seed == 0 {
		seed = rand.Uint64N(1_000_000)
	}
	for left := max(1, int(*flagFor/perFault)); left > 0; left -= roundFaults {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { runRound(t, b, seed, min(left, roundFaults)) })
		seed++
	}
}

// runRound has a deployment suffer that many faults, and checks what its clients were
// told.
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
