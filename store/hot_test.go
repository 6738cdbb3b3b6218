package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestTheCommonCycleIsHOTUpdates: an index on anything that changes with a lease
// would show here.
func TestTheCommonCycleIsHOTUpdates(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s, outside := open(t, url), connect(t, url)
	for range 50 {
		g := mustAcquire(t, s, acquire("a"))
		if _, err := s.Renew(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: g.ID}); err != nil {
			t.Fatal(err)
		}
		mustRelease(t, s, g)
	}
	s.Close() // backends report what they did as they end
	until(t, "the statistics are in", func() bool {
		return number(t, outside, "select n_tup_upd from pg_stat_user_tables where relname = 'records'") == 150
	})
	if n := number(t, outside, "select n_tup_hot_upd from pg_stat_user_tables where relname = 'records'"); n < 145 {
		t.Errorf("%d of 150 updates were HOT", n)
	}
}

// TestUpdatesOfManyLocksAreHOT: rows that share pages leave each other room, since what was written before is tidied
// away. It has a server of its own, because an old transaction anywhere may keep PostgreSQL from that.
func TestUpdatesOfManyLocksAreHOT(t *testing.T) {
	t.Parallel()
	_, url := pgtest.Server(t)
	s, outside := open(t, url), connect(t, url)
	const locks, rounds = 64, 20
	for range rounds {
		var acquires, releases []lock.Command
		for i := range locks {
			a := acquire(fmt.Sprint("n:", i))
			acquires, releases = append(acquires, a), append(releases, lock.Release{Locks: a.Names(), LeaseID: a.LeaseID})
		}
		for _, r := range slices.Concat(s.Batch(t.Context(), acquires), s.Batch(t.Context(), releases)) {
			if r.Err != nil {
				t.Fatal(r.Err)
			}
		}
	}
	s.Close() // backends report what they did as they end
	const all = 2 * locks * rounds
	until(t, "the statistics are in", func() bool {
		return number(t, outside, "select n_tup_upd from pg_stat_user_tables where relname = 'records'") == all
	})
	if n := number(t, outside, "select n_tup_hot_upd from pg_stat_user_tables where relname = 'records'"); n < all*9/10 {
		t.Errorf("%d of %d updates were HOT", n, all)
	}
}
