package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

func openSession(t *testing.T, s paddock.Service, ttl, grace time.Duration) lock.SessionGrant {
	t.Helper()
	g, err := s.OpenSession(t.Context(), lock.OpenSession{ID: lock.SessionID(uuid.New()), Holder: "worker", TTL: ttl, Grace: grace})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// inSession returns an acquire of a lease of the session.
func inSession(name string, g lock.SessionGrant) lock.Acquire {
	return lock.Acquire{Locks: lock.One(name), LeaseID: newID(), Holder: "worker", SessionID: g.ID}
}

// TestHeartbeatsAndTakeoversExcludeEachOther: at the end of a session one replica is asked to renew it, and another
// one for the lock that the session has. Meanwhile another application holds the session's row, and moves its end to
// the next milliseconds. If both were successful, the session's holder would work on beside the next one.
func TestHeartbeatsAndTakeoversExcludeEachOther(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	renews, takes := open(t, url), open(t, url)
	const workers = 8
	var all sync.WaitGroup
	var mu sync.Mutex
	renewed, taken := 0, 0
	for i := range workers {
		holder := connect(t, url)
		all.Go(func() {
			for round := range soak.Rounds(400, 10_000) / workers {
				c := crossing{t, renews, takes, fmt.Sprintf("crossing:%d", i), holder}
				r, err := c.run()
				if err != nil {
					t.Errorf("worker %d, round %d: %v", i, round, err)
					return
				}
				mu.Lock()
				if r {
					renewed++
				} else {
					taken++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if t.Logf("%d sessions were renewed, and the locks of %d taken", renewed, taken); renewed == 0 || taken == 0 {
		t.Error("only one of them ever happened: this is no race")
	}
}

// TestAHeartbeatThatWaitsPastTheEndIsRefused holds the session's row, and ends the session while the heartbeat waits.
func TestAHeartbeatThatWaitsPastTheEndIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	g := openSession(t, s, time.Minute, 0)
	exec(t, outside, "begin")
	exec(t, outside, "select from paddock.sessions for update")
	renewed := make(chan error, 1)
	go func() {
		_, err := s.RenewSession(t.Context(), lock.RenewSession{ID: g.ID})
		renewed <- err
	}()
	until(t, "the heartbeat waits", func() bool { return waiting(t, outside) > 0 })
	exec(t, outside, "update paddock.sessions set expires_at = clock_timestamp()")
	exec(t, outside, "commit")
	if err := <-renewed; !errors.Is(err, lock.ErrSessionLost) {
		t.Errorf("the heartbeat is answered %v, want session_lost", err)
	}
}

// A crossing is one session whose end meets a heartbeat and a takeover.
type crossing struct {
	*testing.T
	renews, takes *store.Store
	name          string
	row           *pgx.Conn // holds the session's row
}

// run returns whether the session was renewed; otherwise its lock was taken.
func (c crossing) run() (renewed bool, err error) {
	ctx := c.Context()
	g, err := c.renews.OpenSession(ctx, lock.OpenSession{Holder: "worker", TTL: time.Minute})
	if err != nil {
		return false, err
	}
	if _, err := c.renews.Acquire(ctx, inSession(c.name, g)); err != nil {
		return false, err
	}
	tx, err := c.row.Begin(ctx)
	if err != nil {
		return false, err
	}
	const move = "update paddock.sessions set expires_at = clock_timestamp() + $2 * interval '1 microsecond' where ref = $1"
	if _, err := tx.Exec(ctx, move, int64(g.ID.Ref()), rand.IntN(8000)); err != nil {
		return false, err
	}
	heartbeat, takeover, stop := make(chan error, 1), make(chan error, 1), make(chan struct{})
	var next lock.Grant
	go func() {
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
		_, err := c.renews.RenewSession(ctx, lock.RenewSession{ID: g.ID})
		heartbeat <- err
	}()
	go func() {
		var err error
		next, err = c.take(stop)
		takeover <- err
	}()
	time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond)
	if err := tx.Commit(ctx); err != nil {
		return false, err
	}
	lost := <-heartbeat
	if lost == nil {
		close(stop)
	}
	refused := <-takeover
	switch {
	case lost == nil && refused == nil:
		return false, fmt.Errorf("the session was renewed, and its lock granted with token %d", next.Token)
	case lost != nil && !errors.Is(lost, lock.ErrSessionLost):
		return false, fmt.Errorf("the heartbeat: %w", lost)
	case refused != nil && !errors.Is(refused, lock.ErrHeld):
		return false, fmt.Errorf("the takeover: %w", refused)
	case lost == nil:
		return true, c.renews.CloseSession(ctx, lock.CloseSession{ID: g.ID})
	}
	return false, c.takes.Release(ctx, lock.Release{Locks: []string{c.name}, LeaseID: next.ID})
}

// take asks for the lock until it is granted, or once more after stop.
func (c crossing) take(stop <-chan struct{}) (g lock.Grant, err error) {
	a := acquire(c.name)
	for again := true; again; {
		select {
		case <-stop:
			again = false
		default:
		}
		if g, err = c.takes.Acquire(c.Context(), a); err == nil {
			break
		}
	}
	return g, err
}

// mustAcquireMany acquires n locks in the session, whose names begin with the prefix.
func mustAcquireMany(t *testing.T, s paddock.Service, g lock.SessionGrant, prefix string, n int) {
	t.Helper()
	for first := 0; first < n; first += paddock.MaxBatch {
		items := make([]lock.Command, min(n-first, paddock.MaxBatch))
		for i := range items {
			items[i] = inSession(fmt.Sprint(prefix, first+i), g)
		}
		for again := []lock.Command(nil); len(items) > 0; items, again = again, nil { // a busy machine may not answer all in time
			for i, r := range s.Batch(t.Context(), items) {
				if errors.Is(r.Err, lock.ErrUnavailable) || errors.Is(r.Err, lock.ErrUnknownOutcome) {
					again = append(again, items[i])
				} else if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
		}
	}
}

// TestAHeartbeatWritesOneRow, whatever the session keeps alive, and no index.
func TestAHeartbeatWritesOneRow(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	g := openSession(t, s, time.Minute, 0)
	mustAcquireMany(t, s, g, "n:", 2_000)
	const versions = "select count(*) + sum(hashtext(xmin::text || ctid::text)) from paddock.records"
	before := number(t, outside, versions)
	for range 50 {
		if _, err := s.RenewSession(t.Context(), lock.RenewSession{ID: g.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if after := number(t, outside, versions); after != before {
		t.Error("heartbeats have written locks")
	}
	s.Close() // backends report what they did as they end
	const updates = "select n_tup_upd from pg_stat_user_tables where relname = 'sessions'"
	until(t, "the statistics are in", func() bool { return number(t, outside, updates) >= 50 })
	if n := number(t, outside, updates); n != 50 {
		t.Errorf("50 heartbeats were %d updates", n)
	}
	if n := number(t, outside, "select n_tup_hot_upd from pg_stat_user_tables where relname = 'sessions'"); n < 45 {
		t.Errorf("%d of 50 updates were HOT", n)
	}
}

// TestARevocationIsToldByOthers, too: another replica has revoked leases of the session, and is gone.
func TestARevocationIsToldByOthers(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	g := openSession(t, s, time.Hour, time.Minute)
	set := lock.Acquire{Locks: append(lock.One("a"), lock.One("b")...), LeaseID: newID(), Holder: "worker", SessionID: g.ID}
	for _, a := range []lock.Acquire{set, inSession("c", g)} {
		held := mustAcquire(t, s, a)
		if _, err := s.Revoke(t.Context(), lock.Revoke{Name: held.Name, Token: held.Token, Reason: "stuck"}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	r, err := open(t, url).RenewSession(t.Context(), lock.RenewSession{ID: g.ID})
	if err != nil || r.RevokedLeases != 3 {
		t.Errorf("the session is %+v, %v", r, err)
	}
}

// TestACloseIsFinishedByOthers: the replica that has closed a session is gone before it has released any lease.
func TestACloseIsFinishedByOthers(t *testing.T) {
	t.Parallel()
	for how, kind := range map[string]lock.Kind{"closed": lock.Released, "revoked": lock.Revoked} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			s, outside := open(t, url), connect(t, url)
			g := openSession(t, s, time.Hour, 0)
			for i := range 20 {
				mustAcquire(t, s, inSession(fmt.Sprintf("n:%d", i), g))
			}
			exec(t, outside, "update paddock.sessions set ended = $1, ended_at = clock_timestamp(), reason = 'gone'", int(kind))
			until(t, "nothing is left", func() bool {
				info, err := s.Session(t.Context(), g.ID.Ref())
				return err == nil && info.Leases == 0 && info.Ended == kind
			})
			for i := range 20 {
				mustAcquire(t, s, acquire(fmt.Sprintf("n:%d", i)))
			}
			if e := eventsOf(t, s, "n:0")[1]; e.Kind != kind {
				t.Errorf("the lease ended by %v", e.Kind)
			}
		})
	}
}

// TestASessionHasSoManyLeases, and places: what it has can still be found, and a release makes room.
func TestASessionHasSoManyLeases(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := replica.Store(t, url, store.Options{Bounds: lock.Bounds{MaxSessionLeases: 3}})
	g := openSession(t, s, time.Hour, 0)
	first := inSession("n:0", g)
	mustAcquire(t, s, first)
	mustAcquire(t, s, inSession("n:1", g))
	third := mustAcquire(t, s, inSession("n:2", g))
	if _, err := s.Acquire(t.Context(), inSession("n:3", g)); !errors.Is(err, lock.ErrTooManyLeases) {
		t.Errorf("a fourth lease: %v", err)
	}
	waits := inSession("n:0", g)
	waits.Wait = lock.MaxWait
	if _, err := s.Acquire(t.Context(), waits); !errors.Is(err, lock.ErrTooManyLeases) {
		t.Errorf("a place beyond the limit: %v", err)
	}
	if again := mustAcquire(t, s, first); !again.Replayed {
		t.Errorf("the first lease is %+v", again)
	}
	mustAcquire(t, s, inSession("n:4", openSession(t, s, time.Hour, 0)))
	mustRelease(t, s, third)
	until(t, "there is room", func() bool {
		_, err := s.Acquire(t.Context(), inSession("n:3", g))
		return err == nil
	})
}

// TestASessionHasItsWholeTTLAfterAFailOver, and keeps its leases.
func TestASessionHasItsWholeTTLAfterAFailOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	g := openSession(t, s, 10*time.Minute, time.Second)
	held := mustAcquire(t, s, inSession("held", g))
	if ms := number(t, outside, "select longest_ms from paddock.epochs"); ms != 601_000 {
		t.Errorf("the longest lease has %d ms, want TTL and grace of the session", ms)
	}
	exec(t, outside, "update paddock.sessions set expires_at = clock_timestamp() + interval '1 minute'")
	exec(t, outside, failOver)
	if e := closed(t, s, "other"); e.RetryAfter < 9*time.Minute {
		t.Errorf("grants are paused for %v, want until the session could be over", e.RetryAfter)
	}
	l, err := s.Lock(t.Context(), "held")
	if err != nil || len(l.Leases) != 1 || l.Leases[0].Token != held.Token || l.Leases[0].Remaining < 9*time.Minute {
		t.Errorf("the lock is %+v, %v", l, err)
	}
	if r, err := s.RenewSession(t.Context(), lock.RenewSession{ID: g.ID}); err != nil || r.RevokedLeases <= g.RevokedLeases {
		t.Errorf("the session is %+v, %v; want that it may have lost leases", r, err)
	}
	if err := s.CloseSession(t.Context(), lock.CloseSession{ID: g.ID}); err != nil {
		t.Error(err)
	}
}

// TestALockedSessionDelaysNothingOfOthers: another application keeps the row of a session locked that is over, so that
// its end cannot be recorded. Calls on its lock, and in the session, wait. Other calls do not, another session that is
// over is ended, and so is what a replica has left of a closed one.
func TestALockedSessionDelaysNothingOfOthers(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	g, other, left := openSession(t, s, 6*time.Second, 0), openSession(t, s, 6*time.Second, 0), openSession(t, s, time.Hour, 0)
	over := time.Now().Add(g.TTL) // not before they are over for the database
	held := mustAcquire(t, s, inSession("held", g))
	mustAcquire(t, s, inSession("other", other))
	mustAcquire(t, s, inSession("left", left))
	unlock := lockSession(t, url, g)
	time.Sleep(time.Until(over))
	exec(t, outside, "update paddock.sessions set ended = $1, ended_at = clock_timestamp() where ref = $2", int(lock.Released), int64(left.ID.Ref()))
	takeover, joins := start(s, t.Context(), acquire("held")), start(s, t.Context(), inSession("new", g))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 500 {
		if _, err := s.Acquire(ctx, acquire(fmt.Sprintf("n:%d", i))); err != nil {
			t.Fatalf("after %d other locks: %v", i, err)
		}
	}
	until(t, "the leases of the others are ended", func() bool {
		return number(t, outside, "select count(*) from paddock.records where lease_id is not null and name in ('other', 'left')") == 0
	})
	unlock()
	if next := takeover.granted(t); next.Token <= held.Token {
		t.Errorf("granted token %d after %d", next.Token, held.Token)
	}
	if joins.over(t); !errors.Is(joins.err, lock.ErrSessionLost) {
		t.Errorf("the acquire in the session: %v", joins.err)
	}
}

// TestTheViewNamesSessions as the API does, also those whose names begin with zeros.
func TestTheViewNamesSessions(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	id := lock.SessionID(uuid.New())
	for id.Ref().String()[0] != '0' {
		id = lock.SessionID(uuid.New())
	}
	g, err := s.OpenSession(t.Context(), lock.OpenSession{ID: id, Holder: "worker", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, inSession("a", g))
	var shown string
	if err := outside.QueryRow(t.Context(), "select session from paddock.leases").Scan(&shown); err != nil || shown != id.Ref().String() {
		t.Errorf("the session %s is shown as %q, %v", id.Ref(), shown, err)
	}
}
