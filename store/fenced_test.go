package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestFencedWritesLeaveRoomForRenewals: writers who shared the lock's row would
// keep it from ever being free for a decision.
func TestFencedWritesLeaveRoomForRenewals(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	g := mustAcquire(t, s, acquire("a"))
	done := make(chan struct{})
	var writers sync.WaitGroup
	for range 12 {
		writers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				_, err := s.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "a", Token: g.Token, Value: []byte("1")})
				if err != nil && !errors.Is(err, lock.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		if _, err := s.Renew(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: g.ID}); err != nil {
			t.Error(err)
		}
		mustRelease(t, s, mustAcquire(t, s, acquire("another")))
	}
	close(done)
	writers.Wait()
	if f, err := s.ReadFenced(t.Context(), "k"); err != nil || f.Version == 0 {
		t.Errorf("the writers got to version %d, %v", f.Version, err)
	}
}

// TestAnOperationIsWrittenOnceByManyWriters at once, on two replicas.
func TestAnOperationIsWrittenOnceByManyWriters(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas := []*store.Store{open(t, url), open(t, url)}
	g := mustAcquire(t, replicas[0], acquire("a"))
	for n := range int64(20) {
		var writers sync.WaitGroup
		for i := range 8 {
			writers.Go(func() {
				w := lock.FencedWrite{Key: "k", Lock: "a", Token: g.Token, Value: fmt.Append(nil, i), OperationID: fmt.Sprint(n)}
				if f, err := replicas[i%2].WriteFenced(t.Context(), w); err != nil || f.Version != n+1 {
					t.Errorf("operation %d was answered %+v, %v", n, f, err)
				}
			})
		}
		writers.Wait()
	}
}

// TestOldOperationsArePruned by fenced writes to other keys, a bounded number at a time.
func TestOldOperationsArePruned(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	exec(t, outside, `insert into paddock.fenced_operations
		select 'elsewhere', i::text, now() - interval '30 days 1 minute' from generate_series(1, 250) as i
		union all select 'elsewhere', 'recent', now() - interval '29 days 23 hours'`)
	const count = "select count(*) from paddock.fenced_operations where key = 'elsewhere'"
	g := mustAcquire(t, s, acquire("a"))
	for before, calls := int64(251), 1; before > 1; calls++ {
		w := lock.FencedWrite{Key: "k", Lock: "a", Token: g.Token, Value: []byte("1"), OperationID: "o"}
		if _, err := s.WriteFenced(t.Context(), w); err != nil || calls > 5000 {
			t.Fatalf("%d operations are left after %d calls, %v", before, calls, err)
		}
		after := number(t, outside, count)
		if before-after > 100 {
			t.Errorf("a call has pruned %d operations", before-after)
		}
		before = after
	}
	if n := number(t, outside, count+" and operation_id = 'recent'"); n != 1 {
		t.Error("an operation of less than 30 days ago was pruned")
	}
}

// TestFloodOfStaleWritesLeavesOneEventForEachToken, although each is shown very often, by several writers at once.
func TestFloodOfStaleWritesLeavesOneEventForEachToken(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	var stale []lock.Token
	for range 5 {
		g := mustAcquire(t, s, acquire("a"))
		mustRelease(t, s, g)
		stale = append(stale, g.Token)
	}
	mustAcquire(t, s, acquire("a"))
	began := time.Now()
	var writers sync.WaitGroup
	for i := range 4 {
		writers.Go(func() {
			for n := range 200 {
				w := lock.FencedWrite{Key: "k", Lock: "a", Token: stale[(n+i)%len(stale)], Value: []byte("1")}
				if _, err := s.WriteFenced(t.Context(), w); !errors.Is(err, lock.ErrStaleToken) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	most := 1 + int(time.Since(began)/paddock.StaleReportInterval)
	page, err := s.Events(t.Context(), paddock.EventQuery{Names: []string{"a"}, Kinds: []lock.Kind{lock.Refused}})
	if err != nil {
		t.Fatal(err)
	}
	recorded := map[lock.Token]int{}
	for _, e := range page.Items {
		if recorded[e.Token]++; e.Holder == "" || e.HeldBy == "" || e.Late <= 0 {
			t.Errorf("the refusal is %+v", e)
		}
	}
	for _, token := range stale {
		if n := recorded[token]; n < 1 || n > most {
			t.Errorf("token %d is recorded %d times, want 1 to %d", token, n, most)
		}
	}
}

// TestAFencedWriteInATreeLocksTheRowsAbove until it is committed: no lock above is granted before, so no write lands
// under a token that is older than such a grant.
func TestAFencedWriteInATreeLocksTheRowsAbove(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside, another := open(t, url), connect(t, url), connect(t, url)
	if _, err := s.DeclareTree(t.Context(), "repo"); err != nil {
		t.Fatal(err)
	}
	g := mustAcquire(t, s, acquire("repo:src:a"))
	write := func() error {
		_, err := s.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: g.Name, Token: g.Token, Value: []byte("1")})
		return err
	}
	if err := write(); err != nil {
		t.Fatal(err)
	}
	unlocked := func() int64 {
		return number(t, another, `select count(*) from (
			select from paddock.records where name in ('repo', 'repo:src', 'repo:src:a') for no key update skip locked) free`)
	}
	if n := unlocked(); n != 3 {
		t.Fatalf("before the write, %d rows are not locked, want 3", n)
	}
	exec(t, outside, "begin")
	exec(t, outside, "select from paddock.fenced where key = 'k' for update")
	written := make(chan error, 1)
	go func() { written <- write() }()
	until(t, "the write waits for its row", func() bool { return waiting(t, outside) > 0 })
	if n := unlocked(); n != 0 {
		t.Errorf("during the write, %d rows are not locked, want none", n)
	}
	exec(t, outside, "commit")
	if err := <-written; err != nil {
		t.Error(err)
	}
}

// TestAFencedWriteKnowsATreeOfAnotherReplica, which has just declared it: there, a token whose lease has ended is
// stale, since a lock above may have been granted.
func TestAFencedWriteKnowsATreeOfAnotherReplica(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	writes, other := open(t, url), open(t, url)
	for i := range 5 { // a replica reads the trees twice a second
		root := fmt.Sprint("root-", i)
		if _, err := other.DeclareTree(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		g := mustAcquire(t, other, acquire(root+":below"))
		mustRelease(t, other, g)
		mustAcquire(t, other, acquire(root))
		w := lock.FencedWrite{Key: root, Lock: g.Name, Token: g.Token, Value: []byte("1")}
		if _, err := writes.WriteFenced(t.Context(), w); !errors.Is(err, lock.ErrStaleToken) {
			t.Fatalf("tree %d: the write under the older token is answered with %v", i, err)
		}
	}
}
