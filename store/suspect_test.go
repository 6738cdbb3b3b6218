package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestALeaseThatStaysIsRefusedWhereAFailOverMayForgetIt, unless the options allow that.
func TestALeaseThatStaysIsRefusedWhereAFailOverMayForgetIt(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	careful, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(careful.Close)
	a := acquire("a")
	a.Stays = true
	_, err = careful.Acquire(t.Context(), a)
	if e := (*lock.Error)(nil); !errors.As(err, &e) || e.Code != lock.ErrInvalid || e.Field != "on_expiry" ||
		!strings.Contains(e.Detail, "paddock epoch quorum on") || !strings.Contains(e.Detail, "--allow-hold") {
		t.Errorf("it is answered with %v", err)
	}
	g := mustAcquire(t, open(t, url), a)
	if _, err := careful.Renew(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: g.ID}); err != nil {
		t.Errorf("one that was granted is not renewed: %v", err)
	}
}

// TestLeasesThatStayDoNotPauseGrantsAfterAFailOver: the pause is as long as the longest lease.
func TestLeasesThatStayDoNotPauseGrantsAfterAFailOver(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	a := acquire("a")
	a.Stays, a.TTL, a.Grace = true, 24*time.Hour, time.Minute
	g := mustAcquire(t, s, a)
	if _, err := s.Renew(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: g.ID}); err != nil {
		t.Error(err)
	}
	if n := number(t, outside, "select max(longest_ms) from paddock.epochs"); n != 0 {
		t.Errorf("the longest lease has %d ms", n)
	}
	mustAcquire(t, s, acquire("b"))
	if n := number(t, outside, "select max(longest_ms) from paddock.epochs"); n != time.Minute.Milliseconds() {
		t.Errorf("the longest lease has %d ms", n)
	}
}

// TestASuspectLockIsCountedAndShownAsSuch, and as nothing else; and the scan does not come back to it.
func TestASuspectLockIsCountedAndShownAsSuch(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	a := acquire("a")
	a.Stays, a.TTL = true, lock.MinTTL
	mustAcquire(t, s, a)
	until(t, "the lock is suspect", func() bool {
		return number(t, outside, "select count(*) from paddock.records where rest ->> 'suspect' = '1'") == 1
	})
	if n := number(t, outside, "select count(*) from paddock.leases where state = 'suspect'"); n != 1 {
		t.Error("the view paddock.leases does not show it")
	}
	if n := number(t, outside, "select count(*) from paddock.history where kind = 'suspected'"); n != 1 {
		t.Errorf("the view paddock.history shows %d events", n)
	}
	until(t, "the lock is counted", func() bool { return s.Stats().Locks.Suspect == 1 })
	if c := s.Stats().Locks; c.Held != 0 || c.InGrace != 0 || c.All != 1 {
		t.Errorf("the counts are %+v", c)
	}
}
