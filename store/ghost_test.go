package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// addGhosts adds n waiters to the queue of a lock without parts, and the row of their replica, which was alive until
// that long ago.
func addGhosts(t *testing.T, outside *pgx.Conn, name string, n int, silent time.Duration) {
	t.Helper()
	exec(t, outside, "insert into paddock.replicas values (99, now() - $1::interval, $2, false)", silent, n)
	exec(t, outside, `insert into paddock.parts (name, slot, place, mode, ttl_ms, attachment, replica, acquired_at, expires_at,
			lease_id, holder, rest)
		select $1, 0, i, 1, 60000, i, 99, now(), now() + interval '45 s', gen_random_uuid(), 'ghost', json_build_object(
			'alive_until', (extract(epoch from now() - $3::interval) * 1000000)::bigint,
			'kept_until', (extract(epoch from now() + interval '55 s') * 1000000)::bigint)
		from generate_series(1, $2::integer) i`, name, n, silent)
	exec(t, outside, "update paddock.records set parts = $2::integer, revision = revision + $2::integer where name = $1", name, n)
}

// TestNoGrantGoesToAGhost: the replica that served the first in the
// queue has sent no heartbeat for a minute, its row is still there, and the
// replica that promotes had not expected a waiter.
func TestNoGrantGoesToAGhost(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, other, outside := open(t, url), open(t, url), connect(t, url)
	g := mustAcquire(t, s, acquire("a"))
	addGhosts(t, outside, "a", 1, time.Minute)
	if q := queueOf(t, s, "a"); len(q) != 1 || q[0].Attached {
		t.Errorf("the queue is %+v", q)
	}
	next := waitFor(t, other, t.Context(), waitingAs("a", "next"))
	mustRelease(t, s, g)
	next.granted(t)
	for _, e := range eventsOf(t, s, "a") {
		if e.Kind == lock.Granted && e.Holder == "ghost" {
			t.Errorf("a ghost was granted the lock: %+v", e)
		}
	}
}

// TestPlacesOfADeadReplicaDoNotKeepNewWaitersOut: two places fill the queue of a lock. They
// count while their replica is alive and for lock.KeepPlace after that, and stay in the
// queue for longer.
func TestPlacesOfADeadReplicaDoNotKeepNewWaitersOut(t *testing.T) {
	t.Parallel()
	for silent, full := range map[time.Duration]bool{
		-lock.ReplicaTTL: true, lock.PlaceRetention / 2: true, lock.PlaceRetention: false, 4 * lock.PlaceRetention: false,
	} {
		t.Run(silent.String(), func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			s, outside := replica.Store(t, url, store.Options{Bounds: lock.Bounds{MaxWaiters: 2}}), connect(t, url)
			mustAcquire(t, s, acquire("a"))
			addGhosts(t, outside, "a", 2, silent)
			next := waitingAs("a", "next")
			next.Wait, next.KeepPlace = lock.MinTTL, true
			want := lock.ErrHeld
			if full {
				want = lock.ErrTooManyWaiters
			}
			if _, err := s.Acquire(t.Context(), next); !errors.Is(err, want) {
				t.Errorf("a new waiter is told %v, want %s", err, want)
			}
			if q := queueOf(t, s, "a"); full != (len(q) == 2) {
				t.Errorf("the queue is %+v", q)
			}
		})
	}
}

// TestACallThatFailsLeavesNoGhost: a waiting call that cannot find out how it stands gives up, and does not block the
// waiters behind it.
func TestACallThatFailsLeavesNoGhost(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, other, outside := open(t, url), open(t, url), connect(t, url)
	held := mustAcquire(t, s, acquire("a"))
	fails := waitFor(t, other, t.Context(), waitingAs("a", "fails"))
	exec(t, outside, "update paddock.records set parts = parts") // so that no replica can answer from its cache
	exec(t, outside, "alter table paddock.parts rename to hidden")
	until(t, "its call asks how it stands, and fails", func() bool {
		exec(t, outside, `select pg_terminate_backend(pid) from pg_stat_activity
			where query like 'listen paddock;%' and datname = current_database()`)
		return fails.isOver()
	})
	exec(t, outside, "alter table paddock.hidden rename to parts")
	if !errors.Is(fails.err, lock.ErrUnavailable) {
		t.Errorf("it is told %v", fails.err)
	}
	until(t, "its place is not attached", func() bool {
		q := queueOf(t, s, "a")
		return len(q) == 0 || !q[0].Attached
	})
	next := start(s, t.Context(), waitingAs("a", "next"))
	mustRelease(t, s, held)
	next.granted(t)
}

// TestAWaiterPromotedByARepeatedAcquireIsNoReplay: that another client's call was a
// replay says nothing of the grant that came with its decision.
func TestAWaiterPromotedByARepeatedAcquireIsNoReplay(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	permit := func(holder string, ttl time.Duration) lock.Acquire {
		a := acquire("a")
		a.Holder, a.Locks[0].Mode, a.Locks[0].Capacity, a.TTL = holder, lock.Permit, 2, ttl
		return a
	}
	mine := permit("mine", time.Hour)
	mustAcquire(t, s, mine)
	for range 5 {
		mustAcquire(t, s, permit("ends soon", lock.MinTTL))
		next := permit("next", time.Hour)
		next.Wait = lock.MaxWait
		w := start(s, t.Context(), next)
		for !w.isOver() {
			mustAcquire(t, s, mine)
		}
		got := w.granted(t)
		if got.Replayed || got.ID != next.LeaseID || got.Holder != "next" {
			t.Errorf("the waiter's first grant is %+v", got)
		}
		mustRelease(t, s, got)
	}
}

// TestAFreeLockIsNotWaitedForLong: whatever kept the waiter from being promoted, the heartbeat finds that the lock is
// free. Here it was freed behind the service's back, and no decision is due for as long as the call may wait.
func TestAFreeLockIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	for what, next := range map[string]lock.Acquire{"a lock": waitingAs("a", "next"), "a set": setOf("next", "b", "a")} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := pgtest.URL(t)
			s, outside := open(t, url), connect(t, url)
			a := acquire("a")
			a.TTL = time.Hour
			mustAcquire(t, s, a)
			w := waitForSet(t, s, t.Context(), next)
			exec(t, outside, "update paddock.records set lease_id = null, rest = null where name = 'a'")
			freed := time.Now()
			w.granted(t)
			if late := time.Since(freed); late > lock.MaxWait/2 {
				t.Errorf("the lock was free for %v: the call had it only because its wait was over", late)
			}
		})
	}
}
