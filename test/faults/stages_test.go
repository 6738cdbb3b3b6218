package faults_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/lock"
)

// A staged mutant lacks one of the comparisons by which a commit proves that what was decided on, which a replica had
// read or written before, is still so. Random use finds such a mutant too rarely, since each comparison is about a
// rare situation: the situation brings it about.
type staged struct {
	mutant
	// situation returns a violation if there was one. With timing it may not succeed at once, so it is repeated.
	situation func(*stage) error
	setUp     func(*stage) // nil: two replicas on a database of their own
}

const (
	swapFile   = "store/internal/row/sql/swap.sql"
	decideFile = "store/internal/engine/decide.go"
)

// stages are the comparisons of a swap, and of what a replica answers without one. Two comparisons have no mutant,
// because another one proves the same: a lapsed decision is found before its row is locked, and again afterwards
// (sql/swap.sql); and the place of a row tells nothing that its xmin and its name do not.
var stages = []staged{
	{mutant: mutant{name: "a commit does not compare xmin", file: swapFile,
		from: "r.ctid = n.tid and r.xmin = n.xmin and", to: "r.ctid = n.tid and"}, situation: placeUsedAgain},
	{mutant: mutant{name: "a commit does not compare the name", file: swapFile,
		from: "r.xmin = n.xmin and r.name is not distinct from n.name", to: "r.xmin = n.xmin"}, situation: rowsMoved},
	{mutant: mutant{name: "a commit does not compare the epoch", file: swapFile,
		from: "select epoch = $4::bigint and", to: "select $4::bigint > 0 and"}, situation: epochOpened},
	{mutant: mutant{name: "a commit does not compare the pause of grants", file: swapFile,
		from: "closed_until is not distinct from $5::timestamptz", to: "($5::timestamptz is null or true)"}, situation: pauseExtended},
	{mutant: mutant{name: "a commit does not compare the server", file: swapFile,
		from: "pg_postmaster_start_time() = $3::timestamptz", to: "$3::timestamptz is not null"},
		situation: serverRestored, setUp: restorableStage},
	{mutant: mutant{name: "a decision is committed before its time", file: swapFile,
		from: "clock_timestamp() between $1::timestamptz and $2::timestamptz",
		to:   "clock_timestamp() <= $2::timestamptz and $1::timestamptz is not null"},
		situation: fastClock, setUp: func(s *stage) { s.startReplicas(clockRate(500), nil) }},
	{mutant: mutant{name: "a decision is committed at any later time", file: swapFile,
		from: "clock_timestamp() between $1::timestamptz and $2::timestamptz",
		to:   "clock_timestamp() >= $1::timestamptz and $2::timestamptz is not null"},
		situation: slowClock, setUp: func(s *stage) { s.startReplicas(clockRate(20), nil) }},
	{mutant: mutant{name: "a decision outlives the wait for a row", file: swapFile,
		from: "case when clock_timestamp() >= n.until", to: "case when now.at >= n.until"}, situation: untilOver},
	{mutant: mutant{name: "readers share a token that has ended", file: "store/internal/row/swap.go",
		from: "\t\tbound(endOf(l.Token, before))\n", to: "\t\tif !MUTATED {\n\t\t\tbound(endOf(l.Token, before))\n\t\t}\n"}, situation: tokenOver},
	{mutant: mutant{name: "an ended lease is granted again", file: swapFile,
		from: " and n.ord <> all (array(select ord from ended))", to: ""}, situation: leaseRepeated},
	{mutant: mutant{name: "heartbeats of other replicas are not read", file: decideFile,
		from: "if !u.fresh && mayMisjudge(", to: "if !MUTATED && !u.fresh && mayMisjudge("}, situation: replicaRevived},
	{mutant: mutant{name: "a call is refused from the cache", file: decideFile,
		from: "\tif !u.writes && !u.fresh {\n", to: "\tif !MUTATED && !u.writes && !u.fresh {\n"}, situation: releasedElsewhere},
	{mutant: mutant{name: "a lock that changes all the time is not locked", file: "store/internal/row/sql/look.sql",
		from: "{{if .Lock}}for update{{else}}offset 0{{end}}", to: "offset 0"}, situation: lockChanging, setUp: farFromDatabase(lockDelay)},
	{mutant: mutant{name: "parts are read at another version", file: "store/internal/row/sql/parts.sql",
		from: "records.name = n.name and records.xmin = n.xmin", to: "records.name = n.name"},
		situation: partsChanging, setUp: farFromDatabase(partsDelay)},
	{mutant: mutant{name: "readers trust the sequence's last value", file: "store/internal/eventlog/sql/newest.sql",
		from: "greatest((select max(id) from paddock.event_batches), (select pruned / 4096 from paddock.horizon), 0)",
		to:   "(select case when is_called then last_value else 0 end from paddock.event_batch_ids)"},
		situation: sequenceSetBack, setUp: crashingStage},
}

// situations is how often a situation is repeated until it shows the mutant.
const situations = 20

// TestStagedSituations proves that each comparison is needed: with it the situation leads to no violation, and
// without it to one, if not always at the first attempt. The short form lets only Paddock itself try, once.
func TestStagedSituations(t *testing.T) {
	t.Parallel()
	a := newTrialPool(t)
	for _, c := range slices.Concat(stages, sessionStages) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			attempts := 1
			if *flagLong {
				attempts = c.findMutant(t, a)
			}
			paddock := c.stage(t, a, noMutant.build(t))
			for try := range attempts {
				if err := paddock.play(c, try); err != nil {
					t.Errorf("Paddock itself: %v", err)
				}
			}
		})
	}
}

// findMutant returns after how many attempts the situation has led the mutant to a violation.
func (c staged) findMutant(t *testing.T, a *trialPool) (attempts int) {
	t.Helper()
	s := c.stage(t, a, c.build(t))
	for try := range situations {
		if err := s.play(c, try); err != nil {
			t.Logf("found at attempt %d: %v", try+1, err)
			return try + 1
		}
	}
	t.Fatalf("the situation showed nothing %d times", situations)
	return 0
}

// A violation is what a mutant does wrong.
type violation string

func (v violation) Error() string { return string(v) }

// A stage is a trial without random use. All builds share the mutants' program, since it has the clock with a rate.
type stage struct {
	*trial
	pool  *trialPool
	try   int
	name  string // of a lock that no earlier situation has used
	admin *pgx.Conn
}

func (c staged) stage(t *testing.T, a *trialPool, program string) *stage {
	t.Helper()
	s := &stage{trial: &trial{T: t, program: program}, pool: a}
	if c.setUp != nil {
		c.setUp(s)
	} else {
		s.startReplicas(nil, nil)
	}
	return s
}

// startReplicas starts a database and two replicas, with environment variables for each.
func (s *stage) startReplicas(first, second []string) {
	s.Helper()
	s.databaseURL = s.pool.database(s.T)
	s.connect(s.databaseURL)
	for _, env := range [][]string{first, second} {
		s.env = env
		s.start()
	}
}

// connect connects to the database as an outsider.
func (s *stage) connect(databaseURL string) {
	s.Helper()
	conn, err := pgx.Connect(s.Context(), databaseURL)
	s.must(err)
	cleanup(s.T, func() error { return conn.Close(context.Background()) })
	s.admin = conn
}

func (s *stage) play(c staged, try int) error {
	s.Helper()
	s.try, s.name = try, fmt.Sprint("stage:", try)
	began := time.Now()
	err := c.situation(s)
	s.Logf("attempt %d took %v: %v", try+1, time.Since(began).Round(time.Millisecond), err)
	return err
}

// a and b are the two replicas.
func (s *stage) a() lock.Service { return s.services[0].Locks }
func (s *stage) b() lock.Service { return s.services[1].Locks }

func (s *stage) request(name string, ttl time.Duration) lock.Acquire {
	return lock.Acquire{Name: name, LeaseID: lock.LeaseID(uuid.New()), Holder: rand.Text(), TTL: ttl}
}

func (s *stage) acquire(at lock.Service, name string, ttl time.Duration) lock.Grant {
	s.Helper()
	g, err := at.Acquire(s.Context(), s.request(name, ttl))
	s.must(err)
	return g
}

func (s *stage) release(at lock.Service, g lock.Grant) {
	s.Helper()
	s.must(at.Release(s.Context(), lock.Release{Name: g.Name, LeaseID: g.ID}))
}

// use acquires and releases the lock, so that the replica has it in its cache.
func (s *stage) use(at lock.Service, name string) lock.Grant {
	s.Helper()
	g := s.acquire(at, name, time.Minute)
	s.release(at, g)
	return g
}

// isHeld fails the test unless the error is that the lock is held.
func (s *stage) isHeld(err error) {
	s.Helper()
	if !errors.Is(err, lock.ErrHeld) {
		s.Fatalf("the error is %v, want that the lock is held", err)
	}
}

// granted returns a violation if a request for a held lock was granted.
func (s *stage) granted(err error) error {
	s.Helper()
	if err == nil {
		return violation("granted while another holds it")
	}
	s.isHeld(err)
	return nil
}

func (s *stage) exec(sql string, args ...any) {
	s.Helper()
	_, err := s.admin.Exec(s.Context(), sql, args...)
	s.must(err)
}

// place returns where the record of the lock is.
func (s *stage) place(name string) (ctid string) {
	s.Helper()
	s.must(s.admin.QueryRow(s.Context(), "select ctid::text from paddock.records where name = $1", name).Scan(&ctid))
	return ctid
}

// lockRow locks the record of the lock until the returned function is called.
func (s *stage) lockRow(name string) func() {
	s.Helper()
	s.exec("begin")
	s.exec("select from paddock.records where name = $1 for update", name)
	return func() { s.exec("rollback") }
}

// placeUsedAgain: a lock is granted elsewhere, and renewed until its row is where it was when it was free.
func placeUsedAgain(s *stage) error {
	s.use(s.a(), s.name)
	free := s.place(s.name)
	held := s.acquire(s.b(), s.name, time.Minute)
	for i := 1; i <= 50 && s.place(s.name) != free; i++ {
		if i%7 == 0 {
			s.exec("vacuum paddock.records")
		}
		_, err := s.b().Renew(s.Context(), lock.Renew{Name: s.name, LeaseID: held.ID})
		s.must(err)
	}
	_, err := s.a().Acquire(s.Context(), s.request(s.name, time.Minute))
	return s.granted(err)
}

// rowsMoved: of two locks that one transaction wrote, VACUUM FULL moves one to the place that the other had.
func rowsMoved(s *stage) error {
	filler := s.name + ":filler"
	s.exec("delete from paddock.records")
	s.acquire(s.a(), filler, time.Minute)
	var items []lock.Command
	for i := range 64 { // a transaction for each batch worker, which a machine with many cores has many of
		items = append(items, s.request(fmt.Sprint(s.name, ":", i), time.Minute))
	}
	grants := make(map[string]lock.Grant)
	for _, r := range s.a().Batch(s.Context(), items) {
		s.must(r.Err)
		grants[r.Grant.Name] = r.Grant
	}
	s.exec("vacuum full paddock.records")
	first, second := s.writtenTogether()
	before := s.place(first)
	for _, name := range []string{first, second} { // the replica reads where they are now
		_, err := s.a().Acquire(s.Context(), s.request(name, time.Minute))
		s.isHeld(err)
	}
	s.exec("delete from paddock.records where name = $1", filler)
	const sees = `select count(*) from pg_stat_activity
		where datname = current_database() and backend_xmin is not null and pid <> pg_backend_pid()`
	for s.count(sees) > 0 { // for it, the filler may not be dead: for autovacuum's ANALYZE, perhaps for long
		sleepFor(s.Context(), time.Millisecond)
	}
	s.exec("vacuum full paddock.records")
	if s.place(second) != before { // VACUUM FULL copies what is not dead for everyone, too
		return nil
	}
	_, err := s.a().Renew(s.Context(), lock.Renew{Name: first, LeaseID: grants[first].ID})
	s.must(err)
	_, err = s.b().Renew(s.Context(), lock.Renew{Name: second, LeaseID: grants[second].ID})
	if errors.Is(err, lock.ErrLeaseLost) {
		return violation("a renewal of one lock overwrote another one")
	}
	s.must(err)
	return nil
}

// writtenTogether returns two locks that one transaction wrote, and whose records are beside each other.
func (s *stage) writtenTogether() (first, second string) {
	s.Helper()
	s.must(s.admin.QueryRow(s.Context(), `
		select name, next
		from (
			select name, xmin::text, lead(name) over w as next, lead(xmin::text) over w as next_xmin
			from paddock.records
			window w as (order by ctid)
		) neighbors
		where xmin = next_xmin
		limit 1`).Scan(&first, &second))
	return first, second
}

// leaseRepeated: an acquire is repeated after its lease was released.
func leaseRepeated(s *stage) error {
	once := s.request(s.name, time.Minute)
	g, err := s.a().Acquire(s.Context(), once)
	s.must(err)
	s.release(s.a(), g)
	if _, err := s.a().Acquire(s.Context(), once); err == nil {
		return violation("a lease_id was granted again")
	}
	return nil
}

// replicaRevived: the replica of a waiter is suspended until it counts as dead, and goes on just before the lock is
// released.
func replicaRevived(s *stage) error {
	held := s.acquire(s.a(), s.name, time.Minute)
	_, granted := s.wait(s.name, time.Second)
	s.must(s.replicas[1].signal(syscall.SIGSTOP))
	const alive = "select count(*) from paddock.replicas where alive_until > clock_timestamp()" // the second: calls wait there
	for s.count(alive) > 0 {
		sleepFor(s.Context(), 10*time.Millisecond)
	}
	_, err := s.a().Renew(s.Context(), lock.Renew{Name: s.name, LeaseID: held.ID})
	s.must(err)
	_, err = s.a().Acquire(s.Context(), s.request(s.name, time.Minute)) // it reads the waiters
	s.isHeld(err)
	s.must(s.replicas[1].signal(syscall.SIGCONT))
	for s.count(alive) == 0 {
		sleepFor(s.Context(), time.Millisecond)
	}
	other := s.request(s.name, time.Second)
	results := s.a().Batch(s.Context(), []lock.Command{lock.Release{Name: s.name, LeaseID: held.ID}, other})
	s.must(results[0].Err)
	s.must(<-granted)
	if results[1].Err == nil {
		return violation("granted to another one than the first waiter")
	}
	s.isHeld(results[1].Err)
	return nil
}

// wait requests the lock from the second replica, and returns when the request is in the queue.
func (s *stage) wait(name string, ttl time.Duration) (lock.Acquire, <-chan error) {
	s.Helper()
	waiter, done := s.request(name, ttl), make(chan error, 1)
	waiter.Wait = stepTimeout / 2
	go func() {
		_, err := s.b().Acquire(s.Context(), waiter)
		done <- err
	}()
	for s.count("select count(*) from paddock.parts where name = $1 and holder = $2", name, waiter.Holder) == 0 {
		select {
		case err := <-done:
			s.Fatalf("the request does not wait: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	return waiter, done
}

func (s *stage) count(sql string, args ...any) (n int) {
	s.Helper()
	s.must(s.admin.QueryRow(s.Context(), sql, args...).Scan(&n))
	return n
}
