package faults_test

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// How the rate of joins at one lock is measured.
const (
	rateJoins   = 300 // at once, beside those that wait already
	rateRounds  = 2   // of which the fastest counts: the machine has other work, too
	rateWait    = 40 * time.Second
	fewWaiting  = 10
	manyWaiting = 1000
	// rateKept is which part of the rate must be left with manyWaiting.
	rateKept = 0.5
)

// TestJoinsDoNotCostTheLengthOfTheQueue measures how many calls a second join the queue of one lock,
// with few and with many that wait already. With -faults.noise the second must be at least half of the
// first.
func TestJoinsDoNotCostTheLengthOfTheQueue(t *testing.T) {
	n := &noise{exposed: newExposed(t)}
	n.launch(program(t), fmt.Sprint("--max-waiters-per-lock=", manyWaiting+rateJoins))
	few, many := 0.0, 0.0
	for round := range rateRounds {
		few = max(few, n.joinRate(fmt.Sprint("few:", round), fewWaiting))
		many = max(many, n.joinRate(fmt.Sprint("many:", round), manyWaiting))
	}
	t.Logf("joins a second at one lock: %.0f with %d that wait already, %.0f with %d: %.2f of the rate", few, fewWaiting, many, manyWaiting, many/few)
	if *flagNoise && many < rateKept*few {
		t.Errorf("with %d that wait already the rate of joins is %.2f of that with %d, want at least %.2f", manyWaiting, many/few, fewWaiting, rateKept)
	}
}

// joinRate returns how many calls a second join a queue in which some wait already.
func (n *noise) joinRate(prefix string, waiting int) float64 {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	chunks := (waiting + perWire - 1) / perWire
	j := newJoining([]*exposed{n.exposed}, prefix, 1, chunks+rateJoins/perWire+1, rateWait)
	for i := range chunks {
		n.must(j.start(ctx, j.wires[i:i+1], min(perWire, waiting-i*perWire), 0))
	}
	j.joined(ctx, waiting, 5*time.Millisecond)
	began := time.Now()
	for i, sent := chunks, 0; sent < rateJoins; i++ {
		some := min(perWire, rateJoins-sent)
		n.must(j.start(ctx, j.wires[i:i+1], some, 0))
		sent += some
	}
	joined := j.joined(ctx, waiting+rateJoins, time.Millisecond)
	took := time.Since(began)
	for _, w := range j.wires {
		_ = w.Close() // which is how the calls leave the queue
	}
	n.must(until(ctx, func() error { return differ("waiters", j.waiting(), 0) }))
	return float64(joined-waiting) / took.Seconds()
}
