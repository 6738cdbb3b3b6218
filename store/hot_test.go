package store_test

import (
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
