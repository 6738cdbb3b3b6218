package deployment_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestWaitersOfAKilledReplicaKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	doomed, other := s.replicas[0], s.replicas[1]
	holder := s.mustAcquire(other, lock.Acquire{Holder: "holder"})
	five := numbered("waiter", 5)
	var left []*caller
	for _, h := range five {
		left = append(left, s.enqueue(doomed, h))
	}
	sixth := s.enqueue(other, "the sixth")
	doomed.process.Signal(t, syscall.SIGKILL)
	for _, c := range left {
		if c.awaitAnswer(); !errors.Is(c.err, lock.ErrUnknownOutcome) {
			t.Fatalf("%s was answered %v by a replica that was killed", c.Holder, c.err)
		}
	}
	killed := time.Now()
	s.release(other, holder.ID)
	sixth.expectGrant()
	t.Logf("the sixth had the lock %v after the others' replica was killed", time.Since(killed))

	late := s.enqueue(other, "one who came later")
	line, r := append(slices.Clone(five), late.Holder), newCriticalSection()
	s.reconnect(other, left, r)
	s.workers.Go(func() { late.useLock(other, r) })
	s.awaitAttached(other, line)
	s.release(other, sixth.LeaseID)
	s.workers.Wait()
	r.checkOrder(s, line)
	s.checkEvents(verify.Rules{AllowOvertaking: true})
}

// reconnect lets callers without a grant repeat their calls in random order, and use the lock when they have it.
func (s *fixture) reconnect(via lock.Service, callers []*caller, r *criticalSection) {
	for _, i := range rand.Perm(len(callers)) {
		c := s.startAcquire(via, lock.Acquire{Holder: callers[i].Holder, LeaseID: callers[i].LeaseID})
		s.workers.Go(func() { c.useLock(via, r) })
	}
}

func TestStoppingReplicaSendsItsWaitersToAnother(t *testing.T) {
	t.Parallel()
	s := newFixture(t, pgtest.URL(t))
	stopping, other := s.replicas[0], s.replicas[1]
	holder := s.mustAcquire(other, lock.Acquire{Holder: "holder"})
	line := numbered("waiter", 20)
	var posts []*postRequest
	for _, h := range line {
		posts = append(posts, s.startPost(stopping, h))
		s.listener.kind(lock.Queued, h)
	}
	stopped := time.Now()
	if code := stopping.process.Signal(t, syscall.SIGTERM); code != 0 || time.Since(stopped) > lock.MaxWait/5 {
		t.Errorf("exit code %d after %v", code, time.Since(stopped))
	}
	var callers []*caller
	for _, p := range posts {
		p.expectRefusal(lock.ErrUnavailable, http.StatusServiceUnavailable)
		if seconds, err := strconv.Atoi(p.header.Get("Retry-After")); err != nil || seconds < 1 {
			t.Errorf("Retry-After is %q", p.header.Get("Retry-After"))
		}
		callers = append(callers, &caller{Acquire: p.Acquire})
	}
	r := newCriticalSection()
	s.reconnect(other, callers, r)
	s.awaitAttached(other, line)
	s.release(other, holder.ID)
	s.workers.Wait()
	r.checkOrder(s, line)
	s.checkEvents(verify.Rules{AllowOvertaking: true})
}

func TestWaitersSurviveADatabaseCrash(t *testing.T) {
	t.Parallel()
	db, databaseURL := pgtest.Server(t)
	s := newFixture(t, databaseURL)
	holder := s.mustAcquire(s.replicas[0], lock.Acquire{Holder: "holder"})
	line, r := numbered("waiter", 50), newCriticalSection()
	for i, h := range line {
		via := retryingService{s.replicas[i%2], s, i}
		c := s.enqueue(via, h)
		s.workers.Go(func() { c.useLock(via, r) })
	}
	crash := func() {
		s.must(db.Kill())
		s.must(db.Restart(t.Context()))
	}
	crash()
	s.release(retryingService{s.replicas[0], s, 0}, holder.ID)
	s.eventually("half of them were served", func() bool { return len(r.holders()) >= len(line)/2 })
	crash()
	s.workers.Wait()
	r.checkOrder(s, line)
	r.check(s, 1)
	s.checkEvents(verify.Rules{})
}

// A retryingService retries each call at another replica until the answer is definite, as clients do after a 503 or a
// lost connection.
type retryingService struct {
	lock.Service
	fixture *fixture
	first   int // replica
}

func (i retryingService) Acquire(ctx context.Context, a lock.Acquire) (g lock.Grant, err error) {
	err = i.retry(ctx, func(l lock.Service) error {
		g, err = l.Acquire(ctx, a)
		return err
	})
	return g, err
}

func (i retryingService) Renew(ctx context.Context, n lock.Renew) (g lock.Grant, err error) {
	err = i.retry(ctx, func(l lock.Service) error {
		g, err = l.Renew(ctx, n)
		return err
	})
	return g, err
}

func (i retryingService) Release(ctx context.Context, r lock.Release) error {
	return i.retry(ctx, func(l lock.Service) error { return l.Release(ctx, r) })
}

func (i retryingService) retry(ctx context.Context, ask func(lock.Service) error) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for n := i.first; ; n++ {
		err := ask(i.fixture.replicas[n%len(i.fixture.replicas)])
		if !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome) {
			return err
		}
		i.fixture.retries.Add(1)
		select {
		case <-again.C:
		case <-ctx.Done():
			return err
		}
	}
}
