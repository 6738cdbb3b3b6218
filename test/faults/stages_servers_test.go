package faults_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/test/internal/pgbouncer"
)

// releasedElsewhere: a lock is released at another replica.
func releasedElsewhere(s *stage) error {
	s.release(s.b(), s.acquire(s.a(), s.name, time.Minute))
	if _, err := s.a().Acquire(s.Context(), s.request(s.name, time.Minute)); err != nil {
		s.isHeld(err)
		return violation("refused although the lock is free")
	}
	return nil
}

// How long the database's answers take to reach a replica that is far from it.
const (
	lockDelay  = 100 * time.Millisecond // less than a statement waits for a row
	partsDelay = 400 * time.Millisecond
)

// farFromDatabase starts a database that is far from the first replica.
func farFromDatabase(delay time.Duration) func(*stage) { return func(s *stage) { s.startFar(delay) } }

func (s *stage) startFar(delay time.Duration) {
	s.databaseURL = s.pool.database(s.T)
	direct := s.databaseURL
	s.connect(direct)
	at, err := url.Parse(direct)
	s.must(err)
	far := startProxy(s.T, "a replica to its database")
	far.setTarget("unix", at.Query().Get("host")+"/.s.PGSQL.5432")
	at.Host, at.RawQuery = far.listenAddress(), "sslmode=disable"
	s.databaseURL = at.String()
	s.start()
	s.databaseURL = direct
	s.start()
	_, err = far.addToxic(toxic{"latency", answers, map[string]int{"latency": int(delay.Milliseconds())}})
	s.must(err)
}

// mostDelays is how many answers of the database a decision may need on a busy machine, at most.
const mostDelays = 100

// lockChanging: one replica changes a lock so often that another one never finds it as it read it.
func lockChanging(s *stage) error {
	s.use(s.a(), s.name+":another")
	permit := s.request(s.name, time.Minute)
	permit.Mode, permit.Capacity = lock.Permit, 10
	held, err := s.b().Acquire(s.Context(), permit)
	s.must(err)
	ctx, cancel := context.WithCancel(s.Context())
	defer cancel()
	stopped := make(chan struct{})
	defer func() { cancel(); <-stopped }()
	go func() {
		defer close(stopped)
		for sleepFor(ctx, time.Millisecond) {
			_, _ = s.b().Renew(ctx, lock.Renew{Name: s.name, LeaseID: held.ID}) // only that it is tried matters
		}
	}()
	another := s.request(s.name, time.Minute)
	another.Mode, another.Capacity = lock.Permit, 10
	within, cancelAcquire := context.WithTimeout(s.Context(), mostDelays*lockDelay)
	defer cancelAcquire()
	if _, err := s.a().Acquire(within, another); err != nil {
		return violation(fmt.Sprintf("not decided within %v: %v", mostDelays*lockDelay, err))
	}
	return nil
}

// partsChanging: between the reading of a record and that of its waiters, the first of two waiters is granted the
// lock. Without the second one there is none left.
func partsChanging(s *stage) error {
	held := s.acquire(s.b(), s.name, time.Minute)
	first, _ := s.wait(s.name, time.Minute)
	var began time.Time
	s.must(s.admin.QueryRow(s.Context(), "select clock_timestamp()").Scan(&began))
	released := make(chan error)
	go func() {
		err := error(lock.ErrUnknownOutcome)
		// A busy machine may take longer than a call, or than a commit should.
		for errors.Is(err, lock.ErrUnknownOutcome) || errors.Is(err, lock.ErrUnavailable) {
			err = s.a().Release(s.Context(), lock.Release{Name: first.Name, LeaseID: first.LeaseID})
		}
		released <- err
	}()
	s.awaitLook(began)
	s.release(s.b(), held)
	_, second := s.wait(s.name, time.Second)
	err := <-released
	if errors.Is(err, lock.ErrLeaseLost) {
		return violation("a place in the queue was lost")
	}
	s.must(err)
	s.must(<-second)
	return nil
}

// awaitLook waits until a replica has read the records of locks since the instant, or has prepared to. The answer has
// partsDelay to go.
func (s *stage) awaitLook(since time.Time) {
	for s.count(`select count(*) from pg_stat_activity where datname = current_database() and state <> 'active'
			and query_start >= $1 and query like '-- The entries with the events that ended leases%'`, since) == 0 {
		s.must(s.Context().Err())
		sleepFor(s.Context(), 2*time.Millisecond)
	}
}

// crashingStage starts a server that can crash.
func crashingStage(s *stage) {
	s.server = newServer(s.T)
	s.databaseURL = s.server.URL("paddock")
	s.start()
	s.start()
}

// sequenceSetBack: transactions draw ids of events and fail, and PostgreSQL crashes before it has flushed that.
func sequenceSetBack(s *stage) error {
	s.use(s.a(), s.name)
	conn, err := pgx.Connect(s.Context(), s.databaseURL)
	s.must(err)
	_, err = conn.Exec(s.Context(), "begin; select nextval('paddock.event_batch_ids') from generate_series(1, 100); rollback")
	s.must(errors.Join(err, conn.Close(s.Context())))
	page, err := s.a().Events(s.Context(), lock.EventQuery{Cursor: lock.CursorNow, Limit: 1})
	s.must(err)
	s.must(errors.Join(s.server.Kill(), s.server.Restart(context.WithoutCancel(s.Context()))))
	granted := s.request(s.name, time.Second)
	for {
		_, err := s.a().Acquire(s.Context(), granted)
		if err == nil {
			break
		}
		s.must(s.Context().Err())
		sleepFor(s.Context(), 10*time.Millisecond)
	}
	page, err = s.a().Events(s.Context(), lock.EventQuery{Cursor: page.Next, Limit: lock.MaxLimit})
	s.must(err)
	if !slices.ContainsFunc(page.Items, func(e lock.Event) bool { return e.Kind == lock.Granted }) {
		return violation("a reader missed an event")
	}
	return nil
}

// epochOpened: an operator starts an epoch, and ends its pause, before the replica's next heartbeat, which would tell
// it.
func epochOpened(s *stage) error {
	before := s.use(s.a(), s.name)
	s.must(store.BeginEpoch(s.Context(), s.databaseURL, "", "a test", int64(before.Token)+1000))
	_, err := store.OpenEpoch(s.Context(), s.databaseURL, "", "the test goes on")
	s.must(err)
	after := s.use(s.a(), s.name)
	if after.Token <= before.Token+1000 {
		return violation("a token of an earlier epoch was granted")
	}
	return nil
}

// runPaddock runs a command of the program to its end.
func (s *stage) runPaddock(args ...string) {
	s.Helper()
	c, err := launch(&logBuffer{}, []string{"PADDOCK_DATABASE_URL=" + s.databaseURL}, s.program, args...)
	s.must(err)
	select {
	case <-c.ended:
	case <-time.After(stepTimeout):
		s.Fatalf("paddock %v has not ended", args)
	}
	if code := c.cmd.ProcessState.ExitCode(); code != 0 {
		s.Fatalf("paddock %v ended with %d:\n%s", args, code, c.output.bytes())
	}
}

// pauseExtended: another replica extends the pause of grants, as sql/extend_epoch.sql of package epoch does.
func pauseExtended(s *stage) error {
	s.use(s.a(), s.name)
	s.exec("update paddock.epochs set closed_until = clock_timestamp() + interval '1 minute'")
	defer s.exec("update paddock.epochs set closed_until = null")
	if _, err := s.a().Acquire(s.Context(), s.request(s.name, time.Minute)); err == nil {
		return violation("granted although grants are paused")
	}
	return nil
}

// restorableStage starts a server that can be restored, behind a PgBouncer: a replica that loses its connection
// forgets what it has read.
func restorableStage(s *stage) {
	s.restorable = newRestorable(s.T)
	s.mode = restored
	s.databaseURL = s.restorable.replicaURL()
	s.runPaddock("migrate", "up")
	config := pgbouncer.New(s.T, "transaction", 50)
	s.must(config.Write(s.databaseURL))
	words, err := config.Command()
	s.must(err)
	pooler, err := launch(&logBuffer{}, nil, words[0], words[1:]...)
	s.must(err)
	cleanup(s.T, func() error { return pooler.stop(syscall.SIGKILL) })
	_, err = pooler.awaitOutput(s.Context(), `(process up)`)
	s.must(err)
	s.databaseURL, s.env = config.Through(s.T, s.databaseURL), []string{"PADDOCK_POOLER_MODE=transaction"}
	s.start()
	s.start()
}

// serverRestored: the database loses a lease that another replica has granted. The replica that serves the next call
// has read the lock before, and has not seen that the database was restored.
func serverRestored(s *stage) error {
	if len(s.replicas) < 2 {
		s.start()
	}
	s.name = "restored" // always the same, so that the tokens in the cache can be granted for it
	s.use(s.a(), s.name)
	s.must(s.restorable.snapshot(s.Context()))
	held := s.acquire(s.b(), s.name, time.Minute)
	sleepFor(s.Context(), noticeDelay)
	s.must(s.replicas[1].stop(syscall.SIGKILL))
	s.replicas, s.services = s.replicas[:1], s.services[:1]
	s.must(s.replicas[0].signal(syscall.SIGSTOP))
	s.must(s.restorable.restore(s.Context(), restoreOptions{(*restorable).crash, false}))
	answer := make(chan error)
	go func() {
		_, err := s.a().Acquire(s.Context(), s.request(s.name, time.Minute))
		answer <- err
	}()
	sleepFor(s.Context(), arrivalDelay)
	s.must(s.replicas[0].signal(syscall.SIGCONT))
	if err := <-answer; err == nil && time.Now().Before(held.Until) {
		return violation("granted while the holder of a lost lease counts on it")
	}
	conn, err := s.restorable.connect(s.Context(), "paddock")
	s.must(err)
	_, err = conn.Exec(s.Context(), "update paddock.epochs set closed_until = null")
	s.must(errors.Join(err, conn.Close(s.Context())))
	return nil
}
