package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestWhatWasAnsweredSurvivesACrash kills PostgreSQL right after a grant, a
// release and a fenced write were answered, and starts it again.
func TestWhatWasAnsweredSurvivesACrash(t *testing.T) {
	t.Parallel()
	server, url := pgtest.Server(t)
	s := open(t, url)
	var newest lock.Token
	for round := range 2 {
		gone := mustAcquire(t, s, acquire(fmt.Sprintf("released:%d", round)))
		mustRelease(t, s, gone)
		written := lock.FencedWrite{Key: "k", Lock: gone.Name, Token: gone.Token, Value: []byte("1")}
		if _, err := s.WriteFenced(t.Context(), written); err != nil {
			t.Fatal(err)
		}
		a := acquire(fmt.Sprintf("held:%d", round))
		g := mustAcquire(t, s, a)
		if g.Token <= newest {
			t.Fatalf("token %d after %d", g.Token, newest)
		}
		newest = g.Token
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := mustAcquire(t, s, a)
		if !again.Replayed || again.Token != g.Token || !again.ExpiresAt.Equal(g.ExpiresAt) {
			t.Errorf("after the crash the lease is %+v, was %+v", again, g)
		}
		if l, err := s.Lock(t.Context(), gone.Name); err != nil || l.State != lock.Free || l.Token != gone.Token {
			t.Errorf("after the crash the released lock is %+v, %v", l, err)
		}
		if f, err := s.ReadFenced(t.Context(), "k"); err != nil || f.Token != gone.Token {
			t.Errorf("after the crash the fenced value is %+v, %v", f, err)
		}
	}
}

// TestACommitThatNoStandbyConfirmedIsNoGrant has PostgreSQL wait for a standby
// that there is not, and then cancels the wait: it reports success with a
// warning, which must not reach the caller as a grant, even where the database
// keeps warnings to itself.
func TestACommitThatNoStandbyConfirmedIsNoGrant(t *testing.T) {
	t.Parallel()
	_, url := pgtest.Server(t)
	outside := connect(t, url)
	exec(t, outside, "alter database paddock set client_min_messages = error")
	s := open(t, url)
	mustRelease(t, s, mustAcquire(t, s, acquire("before"))) // so that the length of such leases is noted already
	exec(t, outside, "alter system set synchronous_standby_names = 'ANY 1 (nobody)'")
	exec(t, outside, "select pg_reload_conf()")

	// The server takes a moment to read its settings: until then commits succeed.
	var a lock.Acquire
	tries := 0
	until(t, "a commit waits and its caller leaves", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		tries++
		a = acquire(fmt.Sprintf("a:%d", tries))
		_, err := s.Acquire(ctx, a)
		if err != nil && !errors.Is(err, lock.ErrUnknownOutcome) {
			t.Fatalf("err = %v, want unknown_outcome", err)
		}
		return err != nil
	})
	inSync := func() bool {
		return number(t, outside, "select count(*) from pg_stat_activity where wait_event = 'SyncRep'") > 0
	}
	until(t, "the commit still waits, though its caller has left", inSync)

	answered := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), a)
		answered <- err
	}()
	var err error
	until(t, "the replay is answered, its waits cancelled too", func() bool {
		number(t, outside, "select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'")
		select {
		case err = <-answered:
			return true
		default:
			return false
		}
	})
	if !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("the replay gave %v, want unknown_outcome", err)
	}
	exec(t, outside, "alter system reset synchronous_standby_names")
	exec(t, outside, "select pg_reload_conf()")
	if g := mustAcquire(t, s, a); !g.Replayed {
		t.Error("the lease was granted twice")
	}
}

// TestATokenIsNotSaidToHaveEndedBeforeItIsRenewed: the commit of a renewal waits for a standby until the lease is past
// its old end. Verifying its token waits for the outcome, or reports that it is unknown.
func TestATokenIsNotSaidToHaveEndedBeforeItIsRenewed(t *testing.T) {
	t.Parallel()
	_, url := pgtest.Server(t)
	outside := connect(t, url)
	replicas, grants := map[string]*store.Store{}, map[string]lock.Grant{}
	for name, mode := range map[string]lock.Mode{"exclusive": lock.Exclusive, "permit": lock.Permit} {
		s := open(t, url)                                       // one each, so that no renewal waits for another
		mustRelease(t, s, mustAcquire(t, s, acquire("before"))) // so that the length of such leases is noted already
		a := acquire(name)
		a.Locks[0].Mode = mode
		if mode == lock.Permit {
			a.Locks[0].Capacity = 2
		}
		replicas[name], grants[name] = s, mustAcquire(t, s, a)
		if mode == lock.Permit { // with another token that is newer
			a.LeaseID = newID()
			mustAcquire(t, s, a)
		}
	}
	withoutStandby(t, url)
	renewals := make(chan error, len(grants))
	for _, g := range grants {
		endIn(t, outside, g, 5*time.Second) // by hand, since it may have taken long until a commit waited
		go func() {
			_, err := replicas[g.Name].Renew(t.Context(), lock.Renew{Locks: []string{g.Name}, LeaseID: g.ID, TTL: time.Minute})
			renewals <- err
		}()
	}
	var verified sync.WaitGroup
	for _, g := range grants {
		until(t, "the lease is past its old end", func() bool {
			return number(t, outside, `select count(*) from (
					select name, token, expires_at from paddock.records where lease_id is not null
					union all select name, token, expires_at from paddock.parts where slot > 0
				) leases where name = $1 and token = $2 and expires_at < clock_timestamp()`, g.Name, int64(g.Token)) == 1
		})
		verified.Go(func() { refuseToVerify(t, replicas[g.Name], g) })
	}
	verified.Wait()
	exec(t, outside, "alter system reset synchronous_standby_names")
	exec(t, outside, "select pg_reload_conf()")
	for range grants {
		if err := <-renewals; err != nil {
			t.Fatalf("a renewal gave %v", err)
		}
	}
	for name, g := range grants {
		if v, err := replicas[name].VerifyToken(t.Context(), lock.Verify{Name: name, Token: g.Token}); err != nil || v.Status != lock.Current {
			t.Errorf("%s: verifying gave %+v, %v after the renewal; want current", name, v, err)
		}
	}
}

// endIn moves the end of the lease. It does not wait for a standby.
func endIn(t *testing.T, outside *pgx.Conn, g lock.Grant, left time.Duration) {
	t.Helper()
	exec(t, outside, "set synchronous_commit = local")
	for _, sql := range []string{
		"update paddock.parts set expires_at = clock_timestamp() + $3::interval where name = $1 and token = $2 and slot > 0",
		`update paddock.records set expires_at = case when token = $2 and lease_id is not null
			then clock_timestamp() + $3::interval else expires_at end where name = $1`,
	} {
		if _, err := outside.Exec(t.Context(), sql, g.Name, int64(g.Token), left); err != nil {
			t.Fatal(err)
		}
	}
}

// refuseToVerify checks that the store reports nothing about a token whose renewal is not known to be committed.
func refuseToVerify(t *testing.T, s *store.Store, g lock.Grant) {
	if l, err := s.Lock(t.Context(), g.Name); err != nil || g.Mode == lock.Exclusive && l.State != lock.Free {
		t.Errorf("%s: a plain read shows %+v, %v", g.Name, l, err)
	}
	if v, err := s.VerifyToken(t.Context(), lock.Verify{Name: g.Name, Token: g.Token}); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("%s: verifying gave %+v, %v while the renewal commits; want unavailable", g.Name, v, err)
	}
}

// withoutStandby returns when commits wait for a standby that there is not.
func withoutStandby(t *testing.T, url string) {
	t.Helper()
	outside := connect(t, url)
	exec(t, outside, "create table if not exists probe (n integer)")
	exec(t, outside, "alter system set synchronous_standby_names = 'ANY 1 (nobody)'")
	exec(t, outside, "select pg_reload_conf()")
	until(t, "a commit waits", func() bool {
		probe := connect(t, url)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := probe.Exec(ctx, "insert into probe values (1)")
		return err != nil
	})
}
