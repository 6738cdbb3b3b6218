package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// lockSession locks the row of the session, as an open psql does, until the returned function is called.
func lockSession(t *testing.T, url string, g lock.SessionGrant) (unlock func()) {
	t.Helper()
	tx, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select from paddock.sessions where ref = $1 for update", int64(g.ID.Ref())); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestASessionIsClearedOnlyWhenNothingIsLeft: so many locks are left of one session that those of another one have
// their turn later, long after its end.
func TestASessionIsClearedOnlyWhenNothingIsLeft(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	many, one := openSession(t, s, time.Hour, 0), openSession(t, s, time.Hour, 0)
	mustAcquireMany(t, s, many, "a:", 3000)
	mustAcquire(t, s, inSession("z", one))
	exec(t, outside, "update paddock.sessions set ended = $1, ended_at = clock_timestamp() - interval '1 hour'", int(lock.Released))
	until(t, "both are cleared", func() bool { return number(t, outside, "select count(*) from paddock.sessions where cleared") == 2 })
	if n := number(t, outside, "select count(*) from paddock.records where lease_id is not null"); n != 0 {
		t.Errorf("%d leases are left of them", n)
	}
}

// heartbeatsWithin returns how many heartbeats in a row succeed, each within the time.
func heartbeatsWithin(t *testing.T, s *store.Store, g lock.SessionGrant, each time.Duration, n int) error {
	t.Helper()
	for i := range n {
		ctx, cancel := context.WithTimeout(t.Context(), each)
		_, err := s.RenewSession(ctx, lock.RenewSession{ID: g.ID})
		cancel()
		if err != nil {
			return fmt.Errorf("heartbeat %d: %w", i, err)
		}
	}
	return nil
}

// TestLockedSessionsDelayNoOtherHeartbeat: their holders keep sending heartbeats.
func TestLockedSessionsDelayNoOtherHeartbeat(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	other := openSession(t, s, time.Hour, 0)
	const locked = 16
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, locked)
	for range locked {
		g := openSession(t, s, time.Hour, 0)
		unlock := lockSession(t, url, g)
		go func() {
			for ctx.Err() == nil {
				call, cancel := context.WithTimeout(ctx, 10*time.Second)
				_, err := s.RenewSession(call, lock.RenewSession{ID: g.ID})
				cancel()
				if err == nil {
					ended <- errors.New("a locked session was renewed")
					return
				}
			}
			unlock()
			ended <- nil
		}()
	}
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); { // until the replica knows which sessions are locked
		if err = heartbeatsWithin(t, s, other, 2*time.Second, 20); err == nil {
			break
		}
	}
	if err != nil {
		t.Error(err)
	}
	cancel()
	for range locked {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestSlowReadsDelayNoHeartbeat: many reads wait for the database at the same time.
func TestSlowReadsDelayNoHeartbeat(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	g := openSession(t, s, time.Hour, 0)
	tx, err := outside.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), "lock table paddock.fenced in access exclusive mode")
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const reads = 20
	ended := make(chan struct{}, reads)
	for range reads {
		go func() {
			_, _ = s.ReadFenced(ctx, "resource")
			ended <- struct{}{}
		}()
	}
	until(t, "reads wait", func() bool {
		return number(t, connect(t, url), "select count(*) from pg_locks l join pg_class c on c.oid = l.relation where c.relname = 'fenced' and not l.granted") >= 3
	})
	if err := heartbeatsWithin(t, s, g, 2*time.Second, 20); err != nil {
		t.Error(err)
	}
	mustAcquire(t, s, inSession("a", g))
	cancel()
	if err := tx.Rollback(t.Context()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		t.Error(err)
	}
	for range reads {
		<-ended
	}
}

// TestARepeatedCallIsWritten, so that what it confirms is as durable as what the first one has written.
func TestARepeatedCallIsWritten(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(ctx context.Context, s *store.Store, id lock.SessionID) error{
		"opening": func(ctx context.Context, s *store.Store, id lock.SessionID) error {
			_, err := s.OpenSession(ctx, lock.OpenSession{ID: id, Holder: "worker", TTL: time.Minute})
			return err
		},
		"close": func(ctx context.Context, s *store.Store, id lock.SessionID) error {
			return s.CloseSession(ctx, lock.CloseSession{ID: id})
		},
		"revocation": func(ctx context.Context, s *store.Store, id lock.SessionID) error {
			_, err := s.RevokeSession(ctx, lock.RevokeSession{Ref: id.Ref(), Reason: "stuck"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			s, outside := open(t, url), connect(t, url)
			g := openSession(t, s, time.Hour, 0)
			const version, end = "select xmin::text::bigint from paddock.sessions",
				"select (extract(epoch from coalesce(ended_at, expires_at)) * 1e6)::bigint from paddock.sessions"
			var versions, ends [2]int64
			for i := range versions {
				if err := call(t.Context(), s, g.ID); err != nil {
					t.Fatal(err)
				}
				versions[i], ends[i] = number(t, outside, version), number(t, outside, end)
			}
			if versions[0] == versions[1] {
				t.Error("it was confirmed from what may be on this server alone")
			}
			if ends[0] != ends[1] {
				t.Error("it has moved the end")
			}
		})
	}
}

// TestNoGrantIsToldForASessionThatIsOver: at the end of a session the lock is released that it waits for, at one
// replica, and the call waits at the other one. Its answer is that the session is over, unless it was granted the lock
// before.
func TestNoGrantIsToldForASessionThatIsOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	releases, waits := open(t, url), open(t, url)
	var all sync.WaitGroup
	var mu sync.Mutex
	granted, lost := 0, 0
	for i := range 8 {
		all.Go(func() {
			for round := range 6 {
				won, err := waitBeyond(t, releases, waits, fmt.Sprintf("waits:%d:%d", i, round))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if won {
					granted++
				} else {
					lost++
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if t.Logf("%d calls were granted the lock, and the sessions of %d were over", granted, lost); lost == 0 {
		t.Error("no session was over before the grant: this is no race")
	}
}

// waitBeyond waits for a lock in a session, and returns whether it was granted.
func waitBeyond(t *testing.T, releases, waits *store.Store, name string) (granted bool, err error) {
	before, err := releases.Acquire(t.Context(), acquire(name))
	if err != nil {
		return false, err
	}
	g, err := waits.OpenSession(t.Context(), lock.OpenSession{Holder: "worker", TTL: 500 * time.Millisecond})
	if err != nil {
		return false, err
	}
	a := inSession(name, g)
	a.Wait = lock.MaxWait
	released := make(chan error, 1)
	go func() {
		time.Sleep(time.Until(g.Until) + time.Duration(rand.IntN(20)-10)*time.Millisecond)
		released <- releases.Release(t.Context(), lock.Release{Locks: []string{name}, LeaseID: before.ID})
	}()
	got, refused := waits.Acquire(t.Context(), a)
	took := time.Since(g.Until)
	if err := <-released; err != nil {
		return false, err
	}
	switch {
	case refused == nil && !got.AcquiredAt.Before(g.ExpiresAt):
		return false, fmt.Errorf("granted at %v in a session that was over at %v", got.AcquiredAt, g.ExpiresAt)
	case refused != nil && !errors.Is(refused, lock.ErrSessionLost):
		return false, refused
	case took > lock.MaxWait/2:
		return false, fmt.Errorf("answered %v after the end of the session", took)
	}
	for _, e := range eventsOf(t, waits, name) {
		if e.Kind == lock.Granted && e.Place > 0 && !e.At.Before(g.ExpiresAt) {
			return false, fmt.Errorf("the lock was granted at %v in a session that was over at %v", e.At, g.ExpiresAt)
		}
	}
	return refused == nil, nil
}
