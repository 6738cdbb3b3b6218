package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// setOf is an acquire of all names that waits as long as may be.
func setOf(holder string, names ...string) lock.Acquire {
	a := lock.Acquire{LeaseID: newID(), Holder: holder, TTL: time.Minute, Wait: lock.MaxWait}
	for _, name := range names {
		a.Locks = append(a.Locks, lock.Member{Name: name})
	}
	return a
}

// waitForSet acquires in the background and returns once it has its places.
func waitForSet(t *testing.T, s *store.Store, ctx context.Context, a lock.Acquire) *wait {
	t.Helper()
	w := start(s, ctx, a)
	for _, name := range a.Names() {
		until(t, a.Holder+" waits for "+name, func() bool { return waitsAs(t, s, name, a.Holder) })
	}
	return w
}

// waitsAs reports whether a call of the holder waits for the lock.
func waitsAs(t *testing.T, s *store.Store, name, holder string) bool {
	t.Helper()
	for _, w := range queueOf(t, s, name) {
		if w.Holder == holder && w.Attached {
			return true
		}
	}
	return false
}

// giveSet releases the set until it is known to be done.
func giveSet(t *testing.T, s paddock.Service, g lock.Grant) {
	t.Helper()
	r := lock.Release{Locks: g.Requested(), LeaseID: g.ID}
	err := s.Release(t.Context(), r)
	for errors.Is(err, lock.ErrUnavailable) || errors.Is(err, lock.ErrUnknownOutcome) {
		err = s.Release(t.Context(), r)
	}
	if err != nil {
		t.Errorf("%s: release of a set: %v", g.Holder, err)
	}
}

// expectNoWaiters ends the test unless the queues of the locks are empty.
func expectNoWaiters(t *testing.T, s *store.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		if q := queueOf(t, s, name); len(q) != 0 {
			t.Fatalf("the queue of %s is %+v", name, q)
		}
	}
}

// TestReplicasServeSetsInOrder: overlapping sets of two replicas by turns are served in the order in which they came,
// whichever replica releases.
func TestReplicasServeSetsInOrder(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	replicas := []*store.Store{open(t, url), open(t, url)}
	first := mustAcquire(t, replicas[0], setOf("first", "a", "b", "c"))
	var waits []*wait
	for i := range 10 {
		names := [][]string{{"a", "b"}, {"b", "a"}, {"c", "b", "a"}, {"b", "c"}}[i%4]
		waits = append(waits, waitForSet(t, replicas[i%2], t.Context(), setOf(fmt.Sprint(i), names...)))
	}
	giveSet(t, replicas[1], first)
	for i, w := range waits {
		g := w.granted(t)
		if g.Token <= first.Token || g.Holder != fmt.Sprint(i) {
			t.Errorf("set %d has token %d as %q after %d", i, g.Token, g.Holder, first.Token)
		}
		for _, later := range waits[i+1:] {
			if later.isOver() {
				t.Errorf("a set behind %d is through: %v, %v", i, later.grant, later.err)
			}
		}
		giveSet(t, replicas[i/2%2], g)
		first = g
	}
}

// TestAClientThatLeavesASetLeavesNoGhost cuts a waiting set off around the moment at which it is granted, many times:
// all locks are free again at once, and the places that are left are skipped.
func TestAClientThatLeavesASetLeavesNoGhost(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	here, there := open(t, url), open(t, url)
	for i := range soak.Rounds(40, 200) {
		g := mustAcquire(t, here, acquire([]string{"a", "b"}[i/2%2]))
		ctx, cut := context.WithCancel(t.Context())
		w := waitForSet(t, []*store.Store{here, there}[i%2], ctx, setOf("gone", "b", "a"))
		released := make(chan struct{})
		go func() {
			defer close(released)
			mustRelease(t, here, g)
		}()
		time.Sleep(rand.N(8 * time.Millisecond))
		cut()
		w.over(t)
		<-released
		if w.err == nil {
			giveSet(t, here, w.grant)
		} else if !errors.Is(w.err, lock.ErrUnavailable) && !errors.Is(w.err, lock.ErrUnknownOutcome) {
			t.Fatal(w.err)
		}
		giveSet(t, here, mustAcquire(t, here, setOf("next", "a", "b")))
	}
	for _, name := range []string{"a", "b"} {
		until(t, "no call waits", func() bool {
			return !slices.ContainsFunc(queueOf(t, here, name), func(w lock.WaiterInfo) bool { return w.Attached })
		})
	}
}

// TestASetOfAReplicaThatIsGonePassesAndComesBack: it is skipped, and a client that comes back in time has its places
// still.
func TestASetOfAReplicaThatIsGonePassesAndComesBack(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	gone, s := open(t, url), open(t, url)
	g := mustAcquire(t, s, acquire("b"))
	ghost := setOf("ghost", "a", "b")
	waitForSet(t, gone, t.Context(), ghost)
	next := waitForSet(t, s, t.Context(), setOf("next", "c", "a"))
	gone.Close() // its calls end, and leave nothing behind but places
	passed := next.granted(t)
	after := waitForSet(t, s, t.Context(), setOf("after", "a", "c"))
	back := start(s, t.Context(), ghost)
	until(t, "the set is back", func() bool { return waitsAs(t, s, "a", "ghost") && waitsAs(t, s, "b", "ghost") })
	giveSet(t, s, passed)
	if after.isOver() {
		t.Errorf("a set behind was served first: %+v, %v", after.grant, after.err)
	}
	mustRelease(t, s, g)
	giveSet(t, s, back.granted(t))
	after.granted(t)
}

// TestTooManyWaiters: the caps, for a lock and in all. A set that finds one queue full has no place in the others.
func TestTooManyWaiters(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]store.Options{
		"for a lock": {Bounds: lock.Bounds{MaxWaiters: 2}}, "in all": {MaxWaiters: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := replica.Store(t, pgtest.URL(t), o)
			mustAcquire(t, s, acquire("b"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			waitFor(t, s, ctx, waitingAs("b", "first"))
			waitFor(t, s, ctx, waitingAs("b", "second"))
			if _, err := s.Acquire(ctx, waitingAs("b", "third")); !errors.Is(err, lock.ErrTooManyWaiters) {
				t.Errorf("the third is told %v", err)
			}
			for _, wait := range []time.Duration{lock.MaxWait, 0} {
				a := setOf("set", "a", "b", "c")
				a.Wait, a.KeepPlace = wait, true
				if wait == 0 && o.MaxWaiters > 0 {
					continue // it is no waiting call
				}
				if _, err := s.Acquire(ctx, a); !errors.Is(err, lock.ErrTooManyWaiters) {
					t.Errorf("a set with the wait %v is told %v", wait, err)
				}
			}
			expectNoWaiters(t, s, "a", "c")
			giveSet(t, s, mustAcquire(t, s, setOf("free", "a", "c")))
		})
	}
}

// TestASetCountsInItsSession: each of its leases and places.
func TestASetCountsInItsSession(t *testing.T) {
	t.Parallel()
	s := replica.Store(t, pgtest.URL(t), store.Options{Bounds: lock.Bounds{MaxSessionLeases: 3}})
	session := openSession(t, s, time.Hour, 0)
	in := func(a lock.Acquire) lock.Acquire {
		a.TTL, a.SessionID = 0, session.ID
		return a
	}
	first := in(setOf("worker", "a", "b"))
	g := mustAcquire(t, s, first)
	for _, wait := range []time.Duration{0, lock.MaxWait} {
		a := in(setOf("worker", "c", "d"))
		a.Wait = wait
		if _, err := s.Acquire(t.Context(), a); !errors.Is(err, lock.ErrTooManyLeases) {
			t.Errorf("a set beyond the limit is told %v", err)
		}
	}
	expectNoWaiters(t, s, "c", "d")
	if again := mustAcquire(t, s, first); !again.Replayed || len(again.Leases) != 2 {
		t.Errorf("the first set is %+v", again)
	}
	room := func(a lock.Acquire) func() bool { // a count may be too great for two seconds
		return func() bool { _, err := s.Acquire(t.Context(), a); return err == nil }
	}
	until(t, "there is room for one", room(inSession("e", session)))
	giveSet(t, s, g)
	until(t, "there is room for two", room(in(setOf("worker", "c", "d"))))
}

// TestARevocationThatIsCutOffIsNotCalledOneWithoutEffect: of the leases with one token, a reader's is revoked, and the
// set's, which a second transaction revokes, are not, since one of its locks cannot be written.
func TestARevocationThatIsCutOffIsNotCalledOneWithoutEffect(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	reads := acquire("a")
	reads.Locks[0].Mode, reads.Grace = lock.Shared, time.Minute // revoked leases are seen until their grace is over
	reader := mustAcquire(t, s, reads)
	set := setOf("set", "a", "b")
	set.Locks[0].Mode, set.Grace = lock.Shared, time.Minute
	if g := mustAcquire(t, s, set); g.Leases[0].Token != reader.Token {
		t.Fatalf("the set's lease of a reader's lock has token %d, want %d", g.Leases[0].Token, reader.Token)
	}
	exec(t, outside, `create function public.fail() returns trigger language plpgsql as
		$$ begin raise 'cannot be written' using errcode = '22012'; end $$`)
	exec(t, outside, "create trigger fail before update on paddock.records for each row when (new.name = 'b') execute function public.fail()")
	r := lock.Revoke{Name: "a", Token: reader.Token, Reason: "stuck"}
	if _, err := s.Revoke(t.Context(), r); !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("cut off, it gave %v", err)
	}
	exec(t, outside, "drop trigger fail on paddock.records")
	revokedAt := map[string]int{"a": 2, "b": 1}
	if _, err := s.Revoke(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	for name, want := range revokedAt {
		l, err := s.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		revoked := 0
		for _, lease := range l.Leases {
			if lease.Revoked {
				revoked++
			}
		}
		if revoked != want {
			t.Errorf("%d leases of %s are revoked, want %d: %+v", revoked, name, want, l.Leases)
		}
	}
}
