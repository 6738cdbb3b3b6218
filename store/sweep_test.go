package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

func short(name string) lock.Acquire {
	a := acquire(name)
	a.TTL = lock.MinTTL
	return a
}

// TestLeasesExpireWithoutACall has several replicas sweep at once: each lease is
// ended, once.
func TestLeasesExpireWithoutACall(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	open(t, url)
	open(t, url)
	for i := range 50 {
		mustAcquire(t, s, short(fmt.Sprintf("n:%d", i)))
	}
	until(t, "all have expired", func() bool {
		return number(t, outside, "select count(*) from paddock.records where lease_id is not null") == 0
	})
	for i := range 50 {
		events := eventsOf(t, s, fmt.Sprintf("n:%d", i))
		if len(events) != 2 || events[1].Kind != lock.Expired {
			t.Errorf("the events of lock %d are %+v, want one grant and one end", i, events)
		}
	}
}

// TestAnotherReplicasLeasesExpireToo: the replica that granted is gone.
func TestAnotherReplicasLeasesExpireToo(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	first := open(t, url)
	a := short("orphan")
	a.TTL = time.Second
	mustAcquire(t, first, a)
	first.Close()
	s := open(t, url)
	until(t, "the lease has expired", func() bool { return len(eventsOf(t, s, "orphan")) == 2 })
}

// TestALivingReplicaEndsTheLeasesOfOneThatIsGone long before its scan, which rests three seconds between 5,000 locks,
// reaches them.
func TestALivingReplicaEndsTheLeasesOfOneThatIsGone(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	outside := connect(t, url)
	exec(t, outside, "insert into paddock.records (name, parts) select to_char(i, 'FM000000'), 0 from generate_series(1, 60000) i")
	s, first := open(t, url), open(t, url)
	until(t, "the first pass has ended", func() bool { return !s.Stats().Locks.At.IsZero() })
	both := func() bool { return number(t, outside, "select count(*) from paddock.replicas") == 2 }
	until(t, "both have sent a heartbeat", both)
	exec(t, outside, "create table known as select max(alive_until) as at from paddock.replicas")
	until(t, "each has sent another one, and knows the other", func() bool {
		return number(t, outside, "select count(*) from paddock.replicas, known where alive_until > at") == 2
	})
	mustAcquire(t, first, short("orphan"))
	first.Close()
	began := time.Now()
	until(t, "the lease has expired", func() bool { return len(eventsOf(t, s, "orphan")) == 2 })
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it was ended after %v", took)
	}
}

// TestARenewalElsewhereIsSeen: the replica that granted does not end a lease that
// was renewed through another.
func TestARenewalElsewhereIsSeen(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, other, outside := open(t, url), open(t, url), connect(t, url)
	a := acquire("a")
	a.TTL = 2 * time.Second
	g := mustAcquire(t, s, a)
	if _, err := other.Renew(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: g.ID, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	until(t, "the first end is past", func() bool {
		return number(t, outside, "select count(*) from paddock.records where acquired_at + interval '2.2 s' < clock_timestamp()") == 1
	})
	if _, err := s.Renew(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: g.ID}); err != nil {
		t.Errorf("the lease is gone: %v", err)
	}
}

// TestLongFreeLocksAreForgottenAndTokensGrowOn ages a lock by hand: its row goes,
// that of a held one and that of one newly free stay, and the next token of the
// forgotten one is greater all the same.
func TestLongFreeLocksAreForgottenAndTokensGrowOn(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := replica.Store(t, url, store.Options{IdleLockRetention: time.Hour}), connect(t, url)
	old := mustAcquire(t, s, acquire("old"))
	mustRelease(t, s, old)
	mustRelease(t, s, mustAcquire(t, s, acquire("new")))
	mustAcquire(t, s, acquire("held"))
	exec(t, outside, "update paddock.records set changed_at = changed_at - interval '2 hours' where name <> 'new'")
	until(t, "the old one is forgotten", func() bool {
		return number(t, outside, "select count(*) from paddock.records") == 2
	})
	if g := mustAcquire(t, s, acquire("old")); g.Token <= old.Token {
		t.Errorf("token %d after %d", g.Token, old.Token)
	}
}
