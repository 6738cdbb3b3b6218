package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestReadsGoOnWhileFencedWritesWaitForAStandby: with the standbys gone every commit
// waits, and each has a connection.
func TestReadsGoOnWhileFencedWritesWaitForAStandby(t *testing.T) {
	t.Parallel()
	_, url := pgtest.Server(t)
	s, outside := open(t, url), connect(t, url)
	const writers = 30
	var held [writers]lock.Grant
	for i := range held {
		held[i] = mustAcquire(t, s, acquire(fmt.Sprintf("a:%d", i)))
	}
	g := mustAcquire(t, s, acquire("a"))
	exec(t, outside, "alter system set synchronous_standby_names = 'ANY 1 (nobody)'")
	exec(t, outside, "select pg_reload_conf()")

	written := make(chan error)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	for i, g := range held {
		go func() {
			for {
				w := lock.FencedWrite{Key: fmt.Sprintf("k:%d", i), Lock: g.Name, Token: g.Token, Value: []byte(`1`)}
				if _, err := s.WriteFenced(ctx, w); err != nil {
					written <- err
					return
				}
			}
		}()
	}
	until(t, "commits wait for the standby", func() bool {
		return number(t, outside, "select count(*) from pg_stat_activity where wait_event = 'SyncRep'") > 1
	})
	if l, err := s.Lock(t.Context(), "a"); err != nil || l.Token != g.Token {
		t.Errorf("a read gave %+v, %v", l, err)
	}
	for range writers {
		if err := <-written; !errors.Is(err, lock.ErrUnknownOutcome) && !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("a write gave %v", err)
		}
	}
	if l, err := s.Lock(t.Context(), "a"); err != nil || l.Token != g.Token {
		t.Errorf("a read gave %+v, %v", l, err)
	}
	exec(t, outside, "alter system reset synchronous_standby_names")
	exec(t, outside, "select pg_reload_conf()")
	until(t, "fenced writes go on", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.WriteFenced(ctx, lock.FencedWrite{Key: "k", Lock: "a", Token: g.Token, Value: []byte(`2`)})
		return err == nil
	})
}
