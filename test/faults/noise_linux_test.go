package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

// The joins of one noisy client, all within the default limits of a replica.
const (
	joinLocks  = 11
	joinConns  = 110
	joinCalls  = joinConns * streamsPerConn // 9,900: 900 for each lock; the limit is 10,000
	joinWindow = 1400 * time.Millisecond
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
	ttl     time.Duration // of the leases that are renewed
	idle    time.Duration // before the noise
	wait    time.Duration // of each join
	batches time.Duration
}

func chooseNoiseSize() noiseSize {
	if *flagNoise {
		return noiseSize{ttl: quietTTL, idle: 10 * time.Second, wait: 20 * time.Second, batches: 10 * time.Second}
	}
	return noiseSize{ttl: busyTTL, idle: 2 * time.Second, wait: 6 * time.Second, batches: 2 * time.Second}
}

// TestNoisyNeighbourCostsNoLease renews 50 leases beside one client that joins 9,900 queue places, or sends the largest
// batches, on one replica and, in the long form, on two. No lease may be lost. With -faults.noise the leases are shorter
// and the delay of renewals is limited, too: see quietTTL and maxNoiseFactor. The long form also lets joins go ahead of
// renewals, which must show.
func TestNoisyNeighbourCostsNoLease(t *testing.T) {
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
			n.measure("batches of 1,000", n.sendBatches)
		})
	}
	if *flagLong {
		t.Run("joins ahead of renewals are found", func(t *testing.T) { findJoinsFirst(t, size) })
	}
}

// A noise is a deployment with holders and a noisy client.
type noise struct {
	*floodedReplica
	size        noiseSize
	replicas    []*floodedReplica
	renewals    *renewals
	idle        renewalStats
	lossAllowed bool // leases may be lost, and calls may be refused for the limit
}

func newNoise(t *testing.T, program string, replicas int, size noiseSize) *noise {
	t.Helper()
	n := &noise{floodedReplica: newFlooded(t), size: size}
	for range replicas {
		r := *n.floodedReplica
		r.launch(program, nil)
		n.replicas = append(n.replicas, &r)
	}
	*n.floodedReplica = *n.replicas[0]
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
	q := newQueued(n.replicas, "noisy", joinLocks, joinConns, n.size.wait)
	q.answered = func(*waiter, answer) (bool, error) { return false, nil }
	began := time.Now()
	n.must(q.start(n.t.Context(), joinCalls, joinWindow))
	sent := time.Now()
	sleepFor(n.t.Context(), time.Until(began.Add(n.size.wait)))
	leaving := time.Now()
	q.awaitAnswers(n.size.wait + 2*stepTimeout)
	over := time.Now()
	n.t.Logf("%d calls were sent in %v; all were answered within %v of the first end of a wait: %v", joinCalls,
		sent.Sub(began).Round(time.Millisecond), over.Sub(leaving).Round(time.Millisecond), q.codes)
	f = n.measured("joins and waits", began, leaving)
	ends = n.measured("ends of waits", leaving, over)
	if n.lossAllowed {
		return f, ends
	}
	if held := q.codes[lock.ErrHeld] + q.codes[lock.ErrUnavailable] + q.codes[lock.ErrUnknownOutcome]; held < joinCalls {
		n.t.Errorf("only %d of %d calls were queued: %v", held, joinCalls, q.codes)
	}
	if worst := max(n.ratio(f), n.ratio(ends)); *flagNoise && worst > maxNoiseFactor {
		n.t.Errorf("beside joins p99 is %.1f times that of an idle service, want at most %d times", worst,
			maxNoiseFactor)
	}
	return f, ends
}

// sendBatches sends the largest batches back to back: acquires of a thousand locks, and their releases.
func (n *noise) sendBatches(ctx context.Context) error {
	c := n.client()
	sent := 0
	for end := time.Now().Add(n.size.batches); time.Now().Before(end); sent += 2 {
		var acquires, releases []lock.Command
		for i := range paddock.MaxBatch {
			name, id := fmt.Sprint("batch:", i), lock.LeaseID(uuid.New())
			acquires = append(acquires, lock.Acquire{Locks: lock.One(name), LeaseID: id, Holder: "batches"})
			releases = append(releases, lock.Release{Locks: []string{name}, LeaseID: id})
		}
		for _, batch := range [][]lock.Command{acquires, releases} {
			for _, r := range c.Batch(ctx, batch) {
				if r.Err != nil && !retryable(r.Err) && !errors.Is(r.Err, lock.ErrLeaseLost) {
					return r.Err
				}
			}
		}
	}
	n.t.Logf("%d batches of %d were answered", sent, paddock.MaxBatch)
	return nil
}

// Holders that renew leases beside a noisy client.
const (
	noiseHolders = 50
	renewEvery   = quietTTL / 3
	renewRetry   = 50 * time.Millisecond // after a renewal that must be sent again
)

// A renewal is one answered renewal.
type renewal struct {
	sent time.Time
	took time.Duration
	lost bool // the lease was lost, or the answer came after its end by the holder's clock
}

// renewals collects the renewals of all holders.
type renewals struct {
	mu     sync.Mutex
	all    []renewal
	newest [noiseHolders]time.Time // when the newest answered renewal was sent
	err    error                   // first error of a holder
}

func (r *renewals) note(holder int, x renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all, r.newest[holder] = append(r.all, x), x.sent
}

func (r *renewals) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// awaitAnswers waits until each holder has an answer to a renewal that it sent after that time.
func (r *renewals) awaitAnswers(ctx context.Context, after time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return retry(ctx, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		waiting := 0
		for _, sent := range r.newest {
			if sent.Before(after) {
				waiting++
			}
		}
		if r.err == nil && waiting > 0 {
			return fmt.Errorf("%d holders wait for an answer to a renewal", waiting)
		}
		return nil
	})
}

// renewalStats sum up the renewals of one phase.
type renewalStats struct {
	phase         string
	answered      int
	p50, p99, max time.Duration
	lost          int
}

func (f renewalStats) String() string {
	return fmt.Sprintf("%s: %d renewals, p50 %v, p99 %v, max %v, %d leases lost", f.phase, f.answered,
		f.p50.Round(10*time.Microsecond), f.p99.Round(10*time.Microsecond), f.max.Round(10*time.Microsecond), f.lost)
}

// stats returns the statistics of the renewals sent in the interval, and the first error of a holder. A phase
// shorter than the time between renewals may have none.
func (r *renewals) stats(phase string, from, to time.Time) (renewalStats, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := renewalStats{phase: phase}
	var took []time.Duration
	for _, x := range r.all {
		if x.sent.Before(from) || !x.sent.Before(to) {
			continue
		}
		took = append(took, x.took)
		if x.lost {
			f.lost++
		}
	}
	if f.answered = len(took); f.answered > 0 {
		slices.Sort(took)
		f.p50, f.p99, f.max = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	return f, r.err
}

// A holder renews one lease through one replica, as a guard does.
type holder struct {
	*renewals
	locks  *client.Client
	number int
	ttl    time.Duration
	name   string
	lease  lock.LeaseID
	ends   time.Time // by its own clock: when the newest grant or renewal was sent, plus the TTL
}

// startHolders starts the holders. They use the replicas in turn and stop with the test.
func startHolders(replicas []*floodedReplica, ttl time.Duration) *renewals {
	r := &renewals{}
	t := replicas[0].t
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range noiseHolders {
		h := &holder{renewals: r, locks: replicas[i%len(replicas)].client(), number: i, ttl: ttl, name: fmt.Sprintf("kept:%02d", i)}
		all.Go(func() {
			if err := h.run(ctx); err != nil && ctx.Err() == nil {
				r.fail(fmt.Errorf("holder %d: %w", h.number, err))
			}
		})
	}
	t.Cleanup(func() { cancel(); all.Wait() })
	return r
}

// run acquires the lock and renews the lease until ctx ends. It acquires the lock again when the lease is lost.
func (h *holder) run(ctx context.Context) error {
	if err := h.acquire(ctx); err != nil {
		return err
	}
	for next := time.Now().Add(rand.N(renewEvery)); sleepFor(ctx, time.Until(next)); {
		sent := time.Now()
		_, err := h.locks.Renew(ctx, lock.Renew{Locks: []string{h.name}, LeaseID: h.lease})
		if ctx.Err() != nil {
			return nil
		}
		now := time.Now()
		x := renewal{sent: sent, took: now.Sub(sent), lost: now.After(h.ends) || errors.Is(err, lock.ErrLeaseLost)}
		switch {
		case err == nil:
			h.ends = sent.Add(h.ttl)
		case !x.lost && retryable(err):
			next = now.Add(renewRetry)
			continue
		case !x.lost:
			return fmt.Errorf("a renewal: %w", err)
		}
		h.note(h.number, x)
		next = sent.Add(renewEvery)
		if x.lost {
			if err := h.acquire(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// acquire acquires the lock under a new lease_id. It retries until the lock is granted.
func (h *holder) acquire(ctx context.Context) error {
	h.lease = lock.LeaseID(uuid.New())
	ctx, cancel := context.WithTimeout(ctx, 2*stepTimeout)
	defer cancel()
	return retry(ctx, func() error {
		sent := time.Now()
		_, err := h.locks.Acquire(ctx, lock.Acquire{Locks: lock.One(h.name), LeaseID: h.lease, Holder: "holder", TTL: h.ttl})
		h.ends = sent.Add(h.ttl)
		return err
	})
}
