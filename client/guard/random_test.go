package guard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

const (
	permits  = 2                // capacity of a semaphore
	maxDelay = 40 * time.Second // of a delayed call
	longWait = time.Hour        // longer than any wait in a run
)

// TestRandomFaultsBreakNoRule runs guards that contend for locks while connections fail, calls arrive
// late, machines are suspended, callers cancel and an operator revokes. The service's clock decides
// whether a rule is broken. To repeat seed 17, use -run 'TestRandomFaultsBreakNoRule/seed_17$' with
// -count 100, because the jitter of guards is not seeded.
func TestRandomFaultsBreakNoRule(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Rounds(60, 4000)) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newModel(t, seed).run(seed) })
		})
	}
}

// A model is a service with locks, the members that contend for them, and the jobs that run under them.
type model struct {
	*testing.T
	rnd       *rand.Rand
	locks     []paddock.Service // the replicas of the service
	names     []string
	modes     []lock.Mode
	ttl       time.Duration
	faultsEnd time.Time // no faults are injected after this time

	mu      sync.Mutex
	jobs    map[*job]bool            // running jobs
	revoked map[lock.Token]time.Time // revoked tokens, and when their leases would have ended at the latest
	newest  map[string]lock.Token    // the newest token of a started job, by lock
}

func newModel(t *testing.T, seed uint64) *model {
	rnd, m := rand.New(rand.NewPCG(seed, 0)), memlock.New()
	w := &model{
		T: t, rnd: rnd, jobs: map[*job]bool{}, revoked: map[lock.Token]time.Time{}, newest: map[string]lock.Token{},
		locks: []paddock.Service{m.Replica(1), m.Replica(2)}[:1+rnd.IntN(2)],
		names: []string{"a", "b", "c"}[:1+rnd.IntN(3)],
		modes: []lock.Mode{lock.Exclusive, lock.Shared, lock.Permit}[:1+rnd.IntN(3)],
		ttl:   oneOf(rnd, lock.MinTTL, time.Second, 6*time.Second, 30*time.Second),
	}
	w.faultsEnd = time.Now().Add(10*w.ttl + time.Minute)
	return w
}

func oneOf[T any](rnd *rand.Rand, these ...T) T { return these[rnd.IntN(len(these))] }

// randomUpTo returns a random positive duration of at most d.
func randomUpTo(rnd *rand.Rand, d time.Duration) time.Duration {
	return 1 + time.Duration(rnd.Int64N(int64(d)))
}

// run lets all members attempt under faults and then once without, and checks what is left.
func (w *model) run(seed uint64) {
	var all sync.WaitGroup
	for i := range 2 + w.rnd.Uint64N(4) {
		m := &member{
			Service: oneOf(w.rnd, w.locks...), model: w, holder: fmt.Sprint("member ", i), suspends: w.rnd.IntN(3) == 0,
			rnd: rand.New(rand.NewPCG(seed, 2*i+1)), faultRnd: rand.New(rand.NewPCG(seed, 2*i+2)),
		}
		m.service = &faultyService{Service: m}
		all.Go(m.injectFaults)
		all.Go(func() {
			for time.Now().Before(w.faultsEnd) {
				time.Sleep(randomUpTo(m.rnd, w.ttl))
				m.attemptAtRandom()
			}
			m.attempt(w.names, guard.Options{TTL: w.ttl, Wait: guard.Forever}, 3*w.ttl, 0, longWait)
		})
	}
	all.Go(w.revokeAtRandom)
	all.Wait()
	time.Sleep(2*w.ttl + maxDelay + lock.PlaceRetention + lock.ClaimTimeout)
	for _, name := range w.names {
		w.verifyHistory(name)
	}
}

// verifyHistory checks that the lock is free without waiters and that its events follow the rules.
func (w *model) verifyHistory(name string) {
	if l := w.lock(name); l.State != lock.Free || l.Waiters != 0 {
		w.Errorf("at the end the lock is %+v", l)
	}
	var events []lock.Event
	for q, more := (paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit}), true; more; {
		page, err := w.locks[0].Events(context.Background(), q)
		w.must(err)
		events, q.Cursor, more = append(events, page.Items...), page.Next, len(page.Items) > 0
	}
	w.must(verify.Rules{Capacity: permits, AllowOvertaking: true}.Check(events))
}

// lock returns the lock's current state.
func (w *model) lock(name string) lock.Lock {
	l, err := w.locks[0].Lock(context.Background(), name)
	w.must(err)
	return l
}

func (w *model) must(err error) {
	if err != nil {
		w.Error(err)
	}
}

// revokeAtRandom revokes leases at random times.
func (w *model) revokeAtRandom() {
	for time.Sleep(randomUpTo(w.rnd, 4*w.ttl)); time.Now().Before(w.faultsEnd); time.Sleep(randomUpTo(w.rnd, 4*w.ttl)) {
		r := lock.Revoke{Name: oneOf(w.rnd, w.names...), Reason: "no reason"}
		if r.Token = w.lock(r.Name).Token; r.Token == 0 {
			continue
		}
		w.mu.Lock()
		w.revoked[r.Token] = time.Now().Add(w.ttl) // no lease ends after that
		w.mu.Unlock()
		if _, err := w.locks[0].Revoke(w.Context(), r); !errors.Is(err, lock.ErrTokenMismatch) {
			w.must(err) // otherwise the lease has ended already
		}
		w.checkJobs()
	}
}

// A job is work that runs under a lease.
type job struct {
	member *member
	lease  *guard.Lease
	mode   lock.Mode
	margin time.Duration
	ctx    context.Context
	done   <-chan struct{} // of ctx; reading it does not check the clock
}

// mayRun reports whether the job has not been canceled. On a machine with suspensions, the job also checks
// its context's Err, which compares the clock.
func (k *job) mayRun() bool {
	select {
	case <-k.done:
		return false
	default:
		return !k.member.suspends || k.ctx.Err() == nil
	}
}

// remaining returns how long the job may still run by the service's clock, and whether the service
// has its lease. A simulated suspension does not advance the test's clock, so it is subtracted.
func (w *model) remaining(k *job) (time.Duration, bool) {
	reserve := k.margin + k.member.suspendedSince(k.lease.Token())
	left, has := longWait, true
	for _, m := range k.lease.Members() {
		i := slices.IndexFunc(w.lock(m.Name).Leases, func(h lock.LeaseInfo) bool { return h.Token == m.Token && h.Slot == m.Slot && !h.Revoked })
		if i < 0 {
			has = false
		} else {
			left = min(left, w.lock(m.Name).Leases[i].Remaining)
		}
	}
	if has {
		return left - reserve, true
	}
	return time.Until(w.revokedUntil(k)) - reserve, false
}

// revokedUntil returns when the lease of the job would have ended at the latest, if it was revoked, and zero
// otherwise.
func (w *model) revokedUntil(k *job) (until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range k.lease.Members() {
		if t := w.revoked[m.Token]; t.After(until) {
			until = t
		}
	}
	return until
}

// checkJobs reports jobs that run past their deadlines, and jobs that overlap although their leases
// were not revoked.
func (w *model) checkJobs() {
	w.mu.Lock()
	running := slices.Collect(maps.Keys(w.jobs))
	w.mu.Unlock()
	together := map[string][]*job{}
	for _, k := range running {
		switch left, has := w.remaining(k); {
		case !k.mayRun():
		case left < 0:
			w.Errorf("%s still runs with token %d, %v after the end of its lease less the margin of %v", k.member.holder, k.lease.Token(), -left, k.margin)
		case has:
			for _, m := range k.lease.Members() {
				together[m.Name] = append(together[m.Name], k)
			}
		}
	}
	for name, ks := range together {
		for _, k := range ks[1:] {
			if k.mode != ks[0].mode || k.mode == lock.Exclusive || k.mode == lock.Permit && len(ks) > permits {
				w.Errorf("%d jobs under %s overlap, among them the tokens %d and %d", len(ks), name, ks[0].lease.Token(), k.lease.Token())
			}
		}
	}
}

// startJob records a running job. An exclusive job must have the greatest token, unless it was revoked.
func (w *model) startJob(k *job) {
	revoked := !w.revokedUntil(k).IsZero()
	w.mu.Lock()
	for _, m := range k.lease.Members() {
		if k.mayRun() && !revoked && k.mode == lock.Exclusive && m.Token <= w.newest[m.Name] {
			w.Errorf("%s starts with token %d after token %d", k.member.holder, m.Token, w.newest[m.Name])
		}
		w.newest[m.Name] = max(w.newest[m.Name], m.Token)
	}
	w.jobs[k] = true
	w.mu.Unlock()
	w.checkJobs()
}

// endJob removes a job. It returns whether the service still has its lease, and whether the lease was revoked.
func (w *model) endJob(k *job) (has, revoked bool) {
	w.checkJobs()
	_, has = w.remaining(k)
	revoked = !w.revokedUntil(k).IsZero()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.jobs, k)
	return has, revoked
}

// checkAtDeadline calls checkJobs as soon as the job must have stopped.
func (w *model) checkAtDeadline(k *job, ended <-chan struct{}) {
	for left, _ := w.remaining(k); left >= 0; left, _ = w.remaining(k) {
		select {
		case <-time.After(left + 1):
		case <-ended:
			return
		}
	}
	w.checkJobs()
}
