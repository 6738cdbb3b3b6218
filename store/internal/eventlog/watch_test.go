package eventlog

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestWatchReadsTheLockWhenItMayHaveChanged: after an event of the lock, and not after events of others.
func TestWatchReadsTheLockWhenItMayHaveChanged(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := openAndRun(t, url), connect(t, url)
	outside := connect(t, url)
	reads := make(chan int64, 100)
	read := func(ctx context.Context, name string) (lock.Lock, error) {
		var n int64
		err := conn.QueryRow(ctx, "select coalesce(max(revision), 0) from paddock.records where name = $1", name).Scan(&n)
		reads <- n
		return lock.Lock{Name: name, State: lock.Free, Revision: n, AsOf: time.Now()}, err
	}
	watch := func(seen lock.Lock, wait time.Duration) <-chan lock.Lock {
		watched := make(chan lock.Lock, 1)
		go func() {
			now, err := l.Watch(t.Context(), paddock.Watch{Name: "a", Seen: seen.Version(), Wait: wait}, read)
			if err != nil {
				t.Error(err)
			}
			watched <- now
		}()
		return watched
	}
	before := <-watch(lock.Lock{}, 0)
	<-reads
	watched := watch(before, lock.MaxWait)
	<-reads
	subscribed(t, l, 1)
	other := commit(t, outside, granted("other")...)
	until(t, "the tail has the event of another lock", func() bool { at, _ := l.tail.position(); return at >= other[0].ID })
	commit(t, outside, granted("a")...)
	l.Poke()
	after := <-watched
	if after.Revision != 1 {
		t.Errorf("the watch ends with %+v", after)
	}
	if n := len(reads); n > 2 { // one if the tail was read before the watch began
		t.Errorf("the lock was read %d more times", n)
	}
	if again := <-watch(after, 20*time.Millisecond); again.Version() != after.Version() {
		t.Errorf("without a change: %+v", again)
	}
}

// TestWatchReadsTheLockAfterABrokenEntry, in which the lock may have events.
func TestWatchReadsTheLockAfterABrokenEntry(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := openAndRun(t, url), connect(t, url)
	var revision atomic.Int64
	read := func(_ context.Context, name string) (lock.Lock, error) {
		return lock.Lock{Name: name, State: lock.Free, Revision: revision.Load(), AsOf: time.Now()}, nil
	}
	seen, _ := read(t.Context(), "a")
	watched := make(chan lock.Lock, 1)
	began := time.Now()
	go func() {
		now, err := l.Watch(t.Context(), paddock.Watch{Name: "a", Seen: seen.Version(), Wait: lock.MaxWait}, read)
		if err != nil {
			t.Error(err)
		}
		watched <- now
	}()
	subscribed(t, l, 1)
	revision.Store(1)
	exec(t, conn, `with drawn as (select nextval('paddock.event_batch_ids') as id)
		insert into paddock.event_batches (id, at, entries) select id, now(), array['["a", 0, [1]]']::json[] from drawn`)
	if now := <-watched; now.Revision != 1 || time.Since(began) >= lock.MaxWait {
		t.Errorf("after %v: %+v", time.Since(began), now)
	}
}

// TestWatchReturnsErrors of the query and of the read.
func TestWatchReturnsErrors(t *testing.T) {
	t.Parallel()
	l := openAndRun(t, pgtest.URL(t))
	broken := errors.New("broken")
	read := func(context.Context, string) (lock.Lock, error) { return lock.Lock{}, broken }
	if _, err := l.Watch(t.Context(), paddock.Watch{Name: "a"}, read); !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
	if _, err := l.Watch(t.Context(), paddock.Watch{Name: ""}, read); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("err = %v", err)
	}
}
