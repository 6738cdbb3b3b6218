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

// hold locks the row of the lock from outside, until that commits.
func hold(t *testing.T, outside *pgx.Conn, name, strength string) {
	t.Helper()
	exec(t, outside, "begin")
	exec(t, outside, "select from paddock.records where name = $1 "+strength, name)
}

// stuck returns a store, and the connection that holds the row of its free lock
// "stuck".
func stuck(t *testing.T) (*store.Store, *pgx.Conn) {
	t.Helper()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	mustRelease(t, s, mustAcquire(t, s, acquire("stuck")))
	hold(t, outside, "stuck", "for update")
	return s, outside
}

// TestARenewalThatWaitsPastTheEndIsRefused holds the lock's row from a second
// connection, without changing it, until the lease is over. A statement that had
// read its clock before the wait would renew.
func TestARenewalThatWaitsPastTheEndIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	a := acquire("a")
	a.TTL = 500 * time.Millisecond
	g := mustAcquire(t, s, a)
	hold(t, outside, "a", "for update")

	renewed := make(chan error, 1)
	go func() {
		_, err := s.Renew(t.Context(), lock.Renew{Name: "a", LeaseID: g.ID})
		renewed <- err
	}()
	until(t, "the renewal waits", func() bool { return waiting(t, outside) > 0 })
	until(t, "the lease is over", func() bool {
		return number(t, outside, "select count(*) from paddock.records where expires_at <= clock_timestamp()") == 1
	})
	exec(t, outside, "commit")

	e := new(lock.Error)
	if err := <-renewed; !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Expired {
		t.Errorf("renewing gave %v, want lease_lost, expired", err)
	}
}

// TestAReaderThatWaitsPastTheEndOfTheOthersGetsANewToken: a client may know that the token of the others has ended.
func TestAReaderThatWaitsPastTheEndOfTheOthersGetsANewToken(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	first := acquire("a")
	first.Mode, first.TTL = lock.Shared, 500*time.Millisecond
	g := mustAcquire(t, s, first)
	hold(t, outside, "a", "for update")

	joined := make(chan lock.Grant, 1)
	go func() {
		second := acquire("a")
		second.Mode = lock.Shared
		g, err := s.Acquire(t.Context(), second)
		if err != nil {
			t.Error(err)
		}
		joined <- g
	}()
	until(t, "the acquire waits", func() bool { return waiting(t, outside) > 0 })
	until(t, "the lease is over", func() bool {
		return number(t, outside, "select count(*) from paddock.parts where expires_at <= clock_timestamp()") == 1
	})
	exec(t, outside, "commit")

	if second := <-joined; second.Token <= g.Token {
		t.Errorf("it got token %d after the lease with token %d had ended", second.Token, g.Token)
	}
}

// TestANameLockedOutsideStallsNoOther keeps one row locked: calls on other
// names go on, and the call on that name is done as soon as the row is free.
func TestANameLockedOutsideStallsNoOther(t *testing.T) {
	t.Parallel()
	s, outside := stuck(t)

	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			if _, err := s.Acquire(t.Context(), acquire("stuck")); err != nil && !errors.Is(err, lock.ErrHeld) {
				t.Error(err)
			}
		})
	}
	until(t, "the calls wait", func() bool { return waiting(t, outside) > 0 })
	for i := range 200 {
		name := fmt.Sprintf("free:%d", i%7)
		mustRelease(t, s, mustAcquire(t, s, acquire(name)))
	}
	if n := number(t, outside, "select revision from paddock.records where name = 'stuck'"); n != 2 {
		t.Errorf("the stuck lock is at revision %d", n)
	}
	exec(t, outside, "commit")
	calls.Wait()
	if events := eventsOf(t, s, "stuck"); len(events) != 3 {
		t.Errorf("%d events, want one more grant", len(events))
	}
	mustAcquire(t, s, acquire("stuck:not"))
}

// TestACallerLeavesALockedNameAtItsDeadline: it is told what may have been done,
// and does not wait for the row.
func TestACallerLeavesALockedNameAtItsDeadline(t *testing.T) {
	t.Parallel()
	s, _ := stuck(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := s.Acquire(ctx, acquire("stuck"))
	if !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("err = %v", err)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want the context's among its causes", err)
	}
}

// TestAnAbandonedCallIsNotRun: its caller left while it was being tried.
// When the row is free at last, the lock is granted to no abandoned call.
func TestAnAbandonedCallIsNotRun(t *testing.T) {
	t.Parallel()
	s, outside := stuck(t)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := s.Acquire(ctx, acquire("stuck"))
		left <- err
	}()
	until(t, "the call waits for the row", func() bool { return waiting(t, outside) > 0 })
	cancel()
	if err := <-left; !errors.Is(err, lock.ErrUnknownOutcome) && !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("err = %v", err)
	}
	// Calls on a lock keep their order, and this one needs no row: once it is answered, no try for the first goes on.
	if err := s.Release(t.Context(), lock.Release{Name: "stuck", LeaseID: newID()}); !errors.Is(err, lock.ErrLeaseLost) {
		t.Errorf("release: %v", err)
	}
	exec(t, outside, "commit")
	mustAcquire(t, s, acquire("stuck"))
}

// TestTokensFollowTheGrants has two replicas race for a few names that are new to
// both. The events by themselves show that no two holds of a name overlapped and
// that tokens grew.
func TestTokensFollowTheGrants(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas := []lock.Service{open(t, url), open(t, url)}
	names := []string{"n:0", "n:1", "n:2"}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for round := range 40 {
				s := replicas[(i+round)%2]
				g, err := s.Acquire(t.Context(), acquire(names[(i+round)%3]))
				if errors.Is(err, lock.ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mustRelease(t, replicas[round%2], g)
			}
		})
	}
	wg.Wait()
	for _, name := range names {
		checkHistory(t, eventsOf(t, replicas[0], name))
	}
}

// checkHistory fails unless the events of one lock show one hold at a time,
// growing tokens and revisions without gaps.
func checkHistory(t *testing.T, events []lock.Event) {
	t.Helper()
	if len(events) == 0 {
		t.Fatal("no events")
	}
	var holding, newest lock.Token
	for i, e := range events {
		if e.Revision != int64(i+1) {
			t.Fatalf("event %d of %s has revision %d", i, e.Name, e.Revision)
		}
		if e.Kind != lock.Granted {
			if e.Token != holding {
				t.Fatalf("%v of token %d of %s while %d held", e.Kind, e.Token, e.Name, holding)
			}
			holding = 0
			continue
		}
		if holding != 0 || e.Token <= newest {
			t.Fatalf("token %d of %s was granted while %d held, after %d", e.Token, e.Name, holding, newest)
		}
		holding, newest = e.Token, e.Token
	}
}

// TestAGrantWaitsForAFencedWriteUnderWay shares the row, as a fenced
// write does: no grant is decided before that is over.
func TestAGrantWaitsForAFencedWriteUnderWay(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	mustRelease(t, s, mustAcquire(t, s, acquire("a")))
	hold(t, outside, "a", "for no key update")
	granted := make(chan struct{})
	go func() {
		defer close(granted)
		if _, err := s.Acquire(t.Context(), acquire("a")); err != nil {
			t.Error(err)
		}
	}()
	until(t, "the grant waits", func() bool { return waiting(t, outside) > 0 })
	select {
	case <-granted:
		t.Error("granted while a write under the old token could still land")
	default:
	}
	exec(t, outside, "commit")
	<-granted
}
