package faults_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// Limits of the effect of a noisy client on renewals.
const (
	// maxNoiseFactor limits the p99 of renewals beside 9,900 joins, as a multiple of that on an idle service.
	maxNoiseFactor = 5
	// idleFloor is the least p99 that is assumed for an idle service, so that the limit does not depend on
	// a fast machine.
	idleFloor = 20 * time.Millisecond
)

// TTLs of the leases that are renewed, three times in quietTTL. None may be lost.
const (
	quietTTL = 2 * time.Second  // with -faults.noise, on a quiet machine
	busyTTL  = 10 * time.Second // otherwise: the machine may have other work
)

// A noiseSize says how much noise there is.
type noiseSize struct {
	ttl       time.Duration // of the leases that are renewed
	idle      time.Duration // before the noise
	wait      time.Duration // of each join
	each      time.Duration // length of batches, lists and streams
	locks     int           // in the list
	streams   int
	allNoises bool // with two replicas, make all noises and not only joins
}

func chooseNoiseSize() noiseSize {
	if *flagNoise {
		return noiseSize{ttl: quietTTL, idle: 10 * time.Second, wait: 20 * time.Second, each: 10 * time.Second, locks: 1_000_000,
			streams: idleStreams, allNoises: true}
	}
	return noiseSize{ttl: busyTTL, idle: 2 * time.Second, wait: 6 * time.Second, each: 2 * time.Second, locks: 200_000,
		streams: idleStreams}
}

// TestNoisyNeighbourCostsNoLease renews 50 leases beside one noisy client at a time, on one replica and, in the long
// form, on two. No lease may be lost. With -faults.noise the leases are shorter and the delay of renewals is limited,
// too: see quietTTL and maxNoiseFactor. The long form also lets joins go ahead of renewals, which must show.
func TestNoisyNeighbourCostsNoLease(t *testing.T) {
	requireOpenFiles(t, 8192)
	normal, size := program(t), chooseNoiseSize()
	deployments := []int{1}
	if *flagLong || *flagNoise {
		deployments = append(deployments, 2)
	}
	for _, replicas := range deployments {
		t.Run(fmt.Sprintf("replicas: %d", replicas), func(t *testing.T) {
			n := newNoise(t, normal, replicas, size)
			n.idle = n.measure("idle", func(ctx context.Context) error { sleepFor(ctx, size.idle); return nil })
			n.runJoins()
			if replicas > 1 && !size.allNoises {
				return
			}
			n.measure("batches of 1,000", n.batches)
			n.fillList()
			n.measure(fmt.Sprintf("lists of %d locks", size.locks), n.lists)
			n.measure(fmt.Sprintf("%d idle streams", size.streams), n.streams)
		})
	}
	if *flagLong {
		t.Run("joins ahead of renewals are found", func(t *testing.T) { findJoinsFirst(t, size) })
	}
}

// A noise is a deployment with holders and a noisy client.
type noise struct {
	*securedReplica
	size        noiseSize
	replicas    []*securedReplica
	renewals    *renewals
	idle        renewalStats
	lossAllowed bool // leases may be lost, and calls may be refused for the limit
}

func newNoise(t *testing.T, program string, replicas int, size noiseSize) *noise {
	t.Helper()
	n := &noise{securedReplica: newSecured(t), size: size}
	for range replicas {
		r := *n.securedReplica
		r.launch(program)
		n.replicas = append(n.replicas, &r)
	}
	*n.securedReplica = *n.replicas[0]
	n.renewals = startHolders(n.replicas, size.ttl)
	began := time.Now()
	n.must(n.renewals.awaitAnswers(t.Context(), began))
	return n
}

// findJoinsFirst runs joins against a build that lets joins go ahead of renewals. Leases must be lost, or renewals
// delayed by far more than the limit; on a fast machine, too, so idleFloor does not apply.
func findJoinsFirst(t *testing.T, size noiseSize) {
	t.Helper()
	n := newNoise(t, joinsFirst.build(t), 1, size)
	n.lossAllowed = true
	n.idle = n.measure("idle", func(ctx context.Context) error { sleepFor(ctx, size.idle); return nil })
	// Other work of the machine must not make the idle service look slow.
	limit := 2 * maxNoiseFactor * min(n.idle.p99, idleFloor)
	if f, ends := n.runJoins(); f.lost+ends.lost == 0 && max(f.p99, ends.p99) <= limit {
		t.Errorf("%v; %v beside joins: no lease was lost and no renewal delayed", n.idle, f)
	}
}

// measure makes a noise and logs the renewals meanwhile.
func (n *noise) measure(what string, noise func(context.Context) error) renewalStats {
	n.t.Helper()
	began := time.Now()
	n.must(noise(n.t.Context()))
	return n.measured(what, began, time.Now())
}

// measured logs the renewals of a phase that is over. A lost lease fails the test.
func (n *noise) measured(phase string, from, to time.Time) renewalStats {
	n.t.Helper()
	n.must(n.renewals.awaitAnswers(n.t.Context(), to))
	f, err := n.renewals.stats(phase, from, to)
	n.must(err)
	n.t.Logf("%v; p99 is %.1f times the idle one", f, n.ratio(f))
	if f.lost > 0 && !n.lossAllowed {
		n.t.Errorf("%s: %d leases were lost", phase, f.lost)
	}
	return f
}

// ratio returns the p99 of renewals as a multiple of that on the idle service.
func (n *noise) ratio(f renewalStats) float64 {
	return float64(f.p99) / float64(max(n.idle.p99, idleFloor))
}

// runJoins sends 9,900 calls that wait for locks in vain. It returns the renewals while the calls waited, and while
// their waits ended.
func (n *noise) runJoins() (f, ends renewalStats) {
	n.t.Helper()
	j := newJoinBurst(n.replicas, "noisy", joinLocks, joinConns, n.size.wait)
	ctx, cancel := context.WithTimeout(n.t.Context(), n.size.wait)
	defer cancel()
	began, before := time.Now(), n.cpuTime()
	n.must(j.start(ctx, j.conns, streamsPerConn, joinWindow))
	sent := time.Now()
	joined := j.awaitWaiting(ctx, joinCalls, 50*time.Millisecond)
	full := time.Now()
	sleepFor(ctx, n.size.wait)
	leaving := time.Now()
	n.must(j.awaitAnswers(n.t.Context()))
	over := time.Now()
	codes, err := j.result()
	n.must(err)
	n.t.Logf("%d calls were sent in %v, %d of them waited after %v; "+
		"all were answered within %v of the first end of a wait: %v; "+
		"the test used %v of CPU time",
		joinCalls, sent.Sub(began).Round(time.Millisecond), joined, full.Sub(began).Round(time.Millisecond),
		over.Sub(leaving).Round(time.Millisecond), codes, (n.cpuTime() - before).Round(time.Millisecond))
	f = n.measured("joins and waits", began, leaving)
	ends = n.measured("ends of waits", leaving, over)
	if n.lossAllowed {
		return f, ends
	}
	if queued := codes[lock.ErrHeld] + codes[lock.ErrUnavailable] + codes[lock.ErrUnknownOutcome]; queued < joinCalls {
		n.t.Errorf("only %d of %d calls were queued: %v", queued, joinCalls, codes)
	}
	if worst := max(n.ratio(f), n.ratio(ends)); *flagNoise && worst > maxNoiseFactor {
		n.t.Errorf("beside joins p99 is %.1f times that of an idle service, want at most %d times", worst,
			maxNoiseFactor)
	}
	return f, ends
}

// cpuTime returns the CPU time of this process.
func (n *noise) cpuTime() time.Duration {
	n.t.Helper()
	var usage syscall.Rusage
	n.must(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
