package store

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// slowCommits has each commit of an event of the lock "slow" wait for an advisory
// lock, as it might for a standby.
const slowCommits = `
create function pg_temp_wait() returns trigger language plpgsql set lock_timeout = 0 as
	$$ begin perform pg_advisory_xact_lock_shared(42); return null; end $$;
create constraint trigger slow_commit after insert on paddock.events
	deferrable initially deferred for each row when (new.name = 'slow') execute function pg_temp_wait();
select pg_advisory_lock(42);`

// TestALateCommitStallsNobodyElse: other names go on, readiness says so, and its
// caller is answered when it is through.
func TestALateCommitStallsNobodyElse(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, err := Open(t.Context(), url, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	outside, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outside.Close(context.WithoutCancel(t.Context())) })
	if _, err := outside.Exec(t.Context(), slowCommits); err != nil {
		t.Fatal(err)
	}
	slow := make(chan error, 1)
	go func() {
		_, err := s.Acquire(t.Context(), lock.Acquire{Name: "slow", Holder: "h"})
		slow <- err
	}()
	for n := 0; n == 0; {
		if err := outside.QueryRow(t.Context(), "select count(*)"+aCommitWaits).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	for len(s.late) == 0 { // each of these waits behind the slow commit, until that is late
		if _, err := s.Acquire(t.Context(), lock.Acquire{Name: fmt.Sprintf("n:%d", time.Now().UnixNano()), Holder: "h"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ready(t.Context()); err == nil {
		t.Error("ready while a commit is late")
	}
	if _, err := outside.Exec(t.Context(), "select pg_advisory_unlock(42)"); err != nil {
		t.Fatal(err)
	}
	if err := <-slow; err != nil {
		t.Errorf("the late commit was answered with %v", err)
	}
}

// TestReadsAndFencedWritesTakeNoConnectionFromDeciding fills their share.
func TestReadsAndFencedWritesTakeNoConnectionFromDeciding(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if cap(s.late)+cap(s.lanes.limit) >= int(s.deciding.Config().MaxConns) {
		t.Errorf("no connection is left for deciding")
	}
	for range cap(s.guests) {
		s.guests <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.Lock(ctx, "a"); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("a read beyond the share gave %v, want unavailable", err)
	}
	if _, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "h"}); err != nil {
		t.Errorf("deciding gave %v", err)
	}
	for range cap(s.guests) {
		<-s.guests
	}
}

func TestAFullQueueIsUnavailable(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]lock.Code{
		batch.ErrFull: lock.ErrUnavailable,
		&batch.CanceledError{Started: false, Cause: context.Canceled}: lock.ErrUnavailable,
		&batch.CanceledError{Started: true, Cause: context.Canceled}:  lock.ErrUnknownOutcome,
	} {
		if got := leftEarly(err); !errors.Is(got, want) || !errors.Is(got, err) {
			t.Errorf("%v became %v, want %v", err, got, want)
		}
	}
}

// TestOnlyNamesLockedOutsideAreSetAside: one that has no row counts only if no
// other is to blame, since its row may just have been rolled back.
func TestOnlyNamesLockedOutsideAreSetAside(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, name := range []string{"held", "free"} {
		if _, err := s.Acquire(t.Context(), lock.Acquire{Name: name, Holder: "h"}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(want string) {
		t.Helper()
		if got, err := s.lockedOf([]string{"free", "held", "none"}); err != nil || fmt.Sprint(got) != want {
			t.Errorf("locked are %v, %v; want %s", got, err, want)
		}
	}
	check("[none]")
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "select from paddock.locks where name = 'held' for update"); err != nil {
		t.Fatal(err)
	}
	check("[held]")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}
