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
	// minRateShare is which part of the rate must be left with manyWaiting.
	minRateShare = 0.5
)

// TestJoinRateDoesNotDependOnQueueLength measures how many calls a second join the queue of one lock,
// with few and with many that wait already. With -faults.noise the second must be at least half of the
// first.
func TestJoinRateDoesNotDependOnQueueLength(t *testing.T) {
	n := &noise{securedReplica: newSecured(t)}
	n.launch(program(t), fmt.Sprint("--max-waiters-per-lock=", manyWaiting+rateJoins))
	few, many := 0.0, 0.0
	for round := range rateRounds {
		few = max(few, n.joinRate(fmt.Sprint("few:", round), fewWaiting))
		many = max(many, n.joinRate(fmt.Sprint("many:", round), manyWaiting))
	}
	t.Logf("joins a second at one lock: %.0f with %d that wait already, %.0f with %d: %.2f of the rate", few, fewWaiting, many, manyWaiting, many/few)
	if *flagNoise && many < minRateShare*few {
		t.Errorf("with %d that wait already the rate of joins is %.2f of that with %d, want at least %.2f", manyWaiting, many/few, fewWaiting, minRateShare)
	}
}

// joinRate returns how many calls a second join a queue in which some wait already.
func (n *noise) joinRate(prefix string, waiting int) float64 {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), stepTimeout)
	defer cancel()
	chunks := (waiting + streamsPerConn - 1) / streamsPerConn
	j := newJoinBurst([]*securedReplica{n.securedReplica}, prefix, 1, chunks+rateJoins/streamsPerConn+1, rateWait)
	for i := range chunks {
		n.must(j.start(ctx, j.wires[i:i+1], min(streamsPerConn, waiting-i*streamsPerConn), 0))
	}
	j.awaitWaiting(ctx, waiting, 5*time.Millisecond)
	began := time.Now()
	for i, sent := chunks, 0; sent < rateJoins; i++ {
		some := min(streamsPerConn, rateJoins-sent)
		n.must(j.start(ctx, j.wires[i:i+1], some, 0))
		sent += some
	}
	joined := j.awaitWaiting(ctx, waiting+rateJoins, time.Millisecond)
	took := time.Since(began)
	for _, w := range j.wires {
		_ = w.Close() // which is how the calls leave the queue
	}
	n.must(retry(ctx, func() error { return checkCount("waiters", j.waiting(), 0) }))
	return float64(joined-waiting) / took.Seconds()
}
