package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

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
	_, err = s.Renew(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: g.ID})
	var e *lock.Error
	if !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Ended != lock.Revoked || e.Reason != "maintenance" {
		t.Errorf("the holder is told %v", err)
	}
}
