package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// lostByRevocation ends the test unless err says that the lease was revoked for that reason.
func lostByRevocation(t *testing.T, err error, reason string) {
	t.Helper()
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Revoked || e.Reason != reason {
		t.Fatalf("the holder is told %v", err)
	}
}

// TestARevokedLeaseIsOneForEveryReplica: the one that granted it remembers the lock as its
// connection left it, and the one that comes later reads it.
func TestARevokedLeaseIsOneForEveryReplica(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, other := open(t, url), open(t, url)
	a := acquire("a")
	a.Grace = lock.MaxGrace
	g := mustAcquire(t, s, a)
	renew := lock.Renew{Name: "a", LeaseID: g.ID}
	revoke := lock.Revoke{Name: "a", Token: g.Token, Reason: "maintenance"}
	if _, err := s.Renew(t.Context(), renew); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Revoke(t.Context(), revoke); err != nil {
		t.Fatal(err)
	}
	later := open(t, url)
	for range 2 {
		for _, r := range []lock.Service{s, other, later} {
			_, err := r.Renew(t.Context(), renew)
			lostByRevocation(t, err, "maintenance")
			_, err = r.Acquire(t.Context(), a)
			lostByRevocation(t, err, "maintenance")
			lostByRevocation(t, r.Release(t.Context(), lock.Release{Name: "a", LeaseID: g.ID}), "maintenance")
			if _, err := r.Acquire(t.Context(), acquire("a")); !errors.Is(err, lock.ErrHeld) {
				t.Fatalf("another client is told %v", err)
			}
		}
	}
	revoke.SkipGrace = true
	if _, err := later.Revoke(t.Context(), revoke); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, acquire("a"))
}

// TestTheEndOfTheGraceIsNotMissedByAReplicaThatComesLater: the replica that revoked the lease
// stops, and a waiter of another is served when the grace is over.
func TestTheEndOfTheGraceIsNotMissedByAReplicaThatComesLater(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	for _, name := range []string{"waited", "alone"} {
		a := acquire(name)
		a.Grace = time.Second
		g := mustAcquire(t, s, a)
		if _, err := s.Revoke(t.Context(), lock.Revoke{Name: name, Token: g.Token, Reason: "maintenance"}); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	later := open(t, url)
	next := start(later, t.Context(), waitingAs("waited", "next")).granted(t)
	if over := eventsOf(t, later, "waited")[1].At.Add(time.Second); next.AcquiredAt.Before(over) {
		t.Errorf("the waiter had the lock %v before the grace's end", over.Sub(next.AcquiredAt))
	}
	until(t, "the lock at which no call looks is free in the table", func() bool {
		return number(t, outside, "select count(*) from paddock.records where name = 'alone' and lease_id is not null") == 0
	})
	if events := eventsOf(t, later, "alone"); len(events) != 2 {
		t.Errorf("the events are %+v", events)
	}
}

// TestAnEpochKeepsTheGraceOfARevokedLease: on the new clock the grace starts over, and the
// lease does not come back.
func TestAnEpochKeepsTheGraceOfARevokedLease(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	a := acquire("a")
	a.Grace = lock.MaxGrace
	g := mustAcquire(t, s, a)
	if _, err := s.Revoke(t.Context(), lock.Revoke{Name: "a", Token: g.Token, Reason: "maintenance"}); err != nil {
		t.Fatal(err)
	}
	exec(t, outside, failOver)
	until(t, "there is a second epoch", func() bool { return epochs(t, outside) == 2 })
	l, err := s.Lock(t.Context(), "a")
	if err != nil || l.State != lock.InGrace || len(l.Leases) != 1 || !l.Leases[0].Revoked {
		t.Errorf("the lock is %+v, %v", l, err)
	}
	_, err = s.Renew(t.Context(), lock.Renew{Name: "a", LeaseID: g.ID})
	lostByRevocation(t, err, "maintenance")
}
