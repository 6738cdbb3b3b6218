package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

var flagCrashes = repeats{
	flag.Int("faults.crashes", 0, "crashes of each kind in TestSubscribersSurviveCrashes; 0: 1, or 20 in the long form"),
	1, 20}

const (
	// watchedLocks is the number of blocking reads that wait while PostgreSQL crashes.
	watchedLocks = 6
	// returnWithin is how soon they must return once PostgreSQL answers again and their lock has changed.
	returnWithin = time.Second
	// watchFor is the wait of each blocking read.
	watchFor = 12 * time.Second
	// lullBeforeCrash is the time from the start of a lull to the crash.
	lullBeforeCrash = 300 * time.Millisecond
	// loadBetweenCrashes is how long the workload runs between two crashes.
	loadBetweenCrashes = time.Second
)

// TestSubscribersSurviveCrashes crashes PostgreSQL repeatedly, each time in a lull of the workload, while
// streams, pollers and blocking reads go on. No event may be missed and no blocking read may return late.
func TestSubscribersSurviveCrashes(t *testing.T) {
	t.Parallel()
	normal := program(t)
	for _, kind := range []struct {
		name  string
		crash func(*database, context.Context) error
	}{
		{serverKilled, (*database).crashKilled},
		{backendKilled, (*database).crashBackend},
		{serverStopped, (*database).crashStopped},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			crashWithSubscribers(t, normal, kind.crash)
		})
	}
}

// crashKilled kills the server and returns when it answers again.
func (db *database) crashKilled(ctx context.Context) error {
	return errors.Join(db.host.Kill(), db.start(ctx))
}

// crashStopped stops the server without a checkpoint and returns when it answers again.
func (db *database) crashStopped(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return errors.Join(db.host.StopAtOnce(bounded), db.start(ctx))
}

// crashBackend kills one backend and returns when PostgreSQL has ended all connections and answers again.
func (db *database) crashBackend(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	witness, err := db.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	if err := errors.Join(db.killBackend(ctx, 0), retry(ctx, func() error {
		if witness.Ping(ctx) == nil {
			return errors.New("the other backends still run")
		}
		return nil
	})); err != nil {
		return err
	}
	_ = witness.Close(ctx) // already closed by the server
	return db.answers(ctx)
}

// A crashHarness is two replicas on a PostgreSQL that crashes, and what was observed.
type crashHarness struct {
	*testing.T
	db       *database
	services []workload.Replica
	rec      *verify.Recorder
	lulls    chan time.Time
	over     chan struct{} // closed when the load has ended

	mu      sync.Mutex
	returns []time.Duration // delay of each blocking read
}

func newCrashHarness(t *testing.T, program string) *crashHarness {
	t.Helper()
	db, err := newDatabase(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, db.host.Close)
	s := &crashHarness{T: t, db: db, rec: verify.NewRecorder(), lulls: make(chan time.Time), over: make(chan struct{})}
	database := db.url(url.Values{"host": {db.host.SocketDir()}, "port": {"5432"}}, "", "paddock")
	for range 2 {
		_, address := serve(t, program, []string{"PADDOCK_DATABASE_URL=" + database}, "--migrate", "--allow-hold")
		s.services = append(s.services, replicaAt(t, address))
	}
	return s
}

const crashPrefix = "crashes"

func crashWithSubscribers(t *testing.T, program string, crash func(*database, context.Context) error) {
	s := newCrashHarness(t, program)
	loading, stop := context.WithCancel(t.Context())
	defer stop()
	var stats workload.Stats
	var failed error
	var loaded sync.WaitGroup
	loaded.Go(func() {
		defer close(s.over)
		stats, failed = workload.Run(loading, s.rec, workload.Options{
			Services: s.services, Prefix: crashPrefix, Clients: 8, Locks: 4, Subscribers: true, Lulls: s.lulls, Tree: true, Policy: true, Hold: true,
		})
	})
	began := time.Now()
	for n := range flagCrashes.count() {
		sleepFor(t.Context(), loadBetweenCrashes)
		s.crash(n, func() error { return crash(s.db, t.Context()) })
	}
	stop()
	loaded.Wait()
	if failed != nil {
		t.Error(failed)
	}
	s.check(stats, time.Since(began))
}

// crash crashes PostgreSQL while blocking reads wait, and changes their locks as soon as it answers
// again.
func (s *crashHarness) crash(n int, crash func() error) {
	s.Helper()
	changed := make(chan struct{})
	var at [watchedLocks]time.Time // when each lock was known to have changed
	var reads sync.WaitGroup
	for i := range watchedLocks {
		name := fmt.Sprintf("%s:watched:%d", crashPrefix, i)
		c := s.client(i)
		seen, err := c.Lock(s.Context(), name)
		if err != nil {
			s.Fatal(err)
		}
		reads.Go(func() { s.watch(c, seen, changed, &at[i]) })
	}
	select {
	case s.lulls <- time.Now():
		sleepFor(s.Context(), lullBeforeCrash)
	case <-s.over:
		s.Fatal("the workload has ended")
	}
	over := s.rec.MarkFault(fmt.Sprint("crash ", n+1))
	if err := crash(); err != nil {
		s.Fatal(err)
	}
	over()
	again := time.Now()
	for i := range watchedLocks {
		at[i] = s.change(i)
	}
	close(changed)
	reads.Wait()
	s.Logf("crash %d: all locks were changed %v after PostgreSQL answered again", n+1,
		at[watchedLocks-1].Sub(again).Round(time.Millisecond))
}

// client returns one of the services as used by a new client.
func (s *crashHarness) client(i int) paddock.Service {
	r := s.services[i%len(s.services)]
	return s.rec.Client(r.Via, r.Locks)
}

// watch reads the lock until it has changed, with retries, and records how long after the change it
// returned.
func (s *crashHarness) watch(c paddock.Service, seen lock.Lock, changed <-chan struct{}, at *time.Time) {
	ctx, cancel := context.WithTimeout(s.Context(), stepTimeout)
	defer cancel()
	var got lock.Lock
	err := retry(ctx, func() (err error) {
		got, err = c.Watch(ctx, paddock.Watch{Name: seen.Name, Seen: seen.Version(), Wait: watchFor})
		if err == nil && got.Version() == seen.Version() {
			err = errors.New("the lock has not changed")
		}
		return err
	})
	returned := time.Now()
	if err != nil {
		s.Errorf("the blocking read of %s: %v", seen.Name, err)
	}
	<-changed
	s.mu.Lock()
	defer s.mu.Unlock()
	s.returns = append(s.returns, max(returned.Sub(*at), 0))
}

// change acquires and releases a watched lock and returns when the grant was first known.
func (s *crashHarness) change(i int) (at time.Time) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), stepTimeout)
	defer cancel()
	a := lock.Acquire{
		Locks: []lock.Member{{Name: fmt.Sprintf("%s:watched:%d", crashPrefix, i), Mode: lock.Exclusive}}, LeaseID: lock.LeaseID(uuid.New()),
		TTL: 2 * time.Second,
	}
	a.Holder = "change " + uuid.UUID(a.LeaseID).String()[:8]
	c := s.client(i + 1) // not the replica that is read
	err := retry(ctx, func() error { _, err := c.Acquire(ctx, a); return err })
	at = time.Now()
	err = errors.Join(err,
		retry(ctx, func() error { return c.Release(ctx, lock.Release{Locks: a.Names(), LeaseID: a.LeaseID}) }))
	if err != nil {
		s.Fatal(err)
	}
	return at
}

// check logs the results and checks the history.
func (s *crashHarness) check(stats workload.Stats, took time.Duration) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), 2*stepTimeout)
	defer cancel()
	h := s.rec.History()
	var err error
	if h.Events, err = verify.Collect(ctx, s.services[0].Locks, crashPrefix); err != nil {
		s.Fatal(err)
	}
	report := h.Check(verify.CheckOptions{AllowOvertaking: true, AllowWaiters: true})
	missed, late, worst := 0, 0, time.Duration(0)
	for _, c := range report.Checks {
		missed += c.Missed
	}
	for _, d := range s.returns {
		if worst = max(worst, d); d > returnWithin {
			late++
		}
	}
	s.Logf("%d crashes in %v: %d of %d events missed, %d gaps; "+
		"%d of %d blocking reads later than %v, the latest by %v",
		flagCrashes.count(), took.Round(time.Second), missed, stats.Subscribers.Events+missed, stats.Subscribers.Gaps, late,
		len(s.returns), returnWithin, worst.Round(time.Millisecond))
	s.Logf("%v", stats.Subscribers)
	if late > 0 || stats.Subscribers.Gaps > 0 {
		s.Error("blocking reads were late, or subscribers received gaps although nothing was pruned")
	}
	if !report.OK() {
		s.Errorf("%s", summarize(report))
	}
}
