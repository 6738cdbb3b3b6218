package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// hold locks the row of the lock from outside, until that commits.
func hold(t *testing.T, outside *pgx.Conn, name string) {
	t.Helper()
	exec(t, outside, "begin")
	exec(t, outside, "select from paddock.records where name = $1 for update", name)
}

// TestAReaderThatWaitsPastTheEndOfTheOthersGetsANewToken: a client may know that the token of the others has ended.
func TestAReaderThatWaitsPastTheEndOfTheOthersGetsANewToken(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	first := acquire("a")
	first.Locks[0].Mode, first.TTL = lock.Shared, 500*time.Millisecond
	g := mustAcquire(t, s, first)
	hold(t, outside, "a")

	joined := make(chan lock.Grant, 1)
	go func() {
		second := acquire("a")
		second.Locks[0].Mode = lock.Shared
		g, err := s.Acquire(t.Context(), second)
		if err != nil {
			t.Error(err)
		}
		joined <- g
	}()
	until(t, "the acquire waits", func() bool { return waiting(t, outside) > 0 })
	until(t, "the lease is over", func() bool {
		return number(t, outside, "select count(*) from paddock.records where expires_at <= clock_timestamp()") == 1
	})
	exec(t, outside, "commit")

	if second := <-joined; second.Token <= g.Token {
		t.Errorf("it got token %d after the lease with token %d had ended", second.Token, g.Token)
	}
}
