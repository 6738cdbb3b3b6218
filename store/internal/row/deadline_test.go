package row

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paddock-lock/paddock/lock"
)

// TestADecisionHolds until a lease that it changes would have ended, and no longer than one that it grants.
func TestADecisionHolds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	lease := func(slot int, ends time.Duration) lock.Lease {
		return lock.Lease{
			ID: lock.LeaseID{byte(slot)}, Slot: slot, Token: lock.Token(slot), TTL: time.Minute, Grace: time.Second,
			ExpiresAt: now.Add(ends - time.Second),
		}
	}
	sharing := func(slot int, ends time.Duration) lock.Lease {
		l := lease(slot, ends)
		l.Token = 1
		return l
	}
	ousted := sharing(4, 40*time.Second)
	ousted.TTL = 0
	unclaimed := lease(1, time.Hour)
	unclaimed.ClaimDeadline = now.Add(2 * time.Second)
	revoked := lease(1, 40*time.Second)
	revoked.TTL = 0
	for name, c := range map[string]struct {
		before, after []lock.Lease
		want          time.Duration // zero: endlessly
	}{
		"a release":                   {[]lock.Lease{lease(0, 10*time.Second)}, nil, 10 * time.Second},
		"a renewal":                   {[]lock.Lease{lease(0, 10*time.Second)}, []lock.Lease{lease(0, time.Hour)}, 10 * time.Second},
		"a renewal that is shortened": {[]lock.Lease{lease(0, 10*time.Second)}, []lock.Lease{lease(0, 5*time.Second)}, 5 * time.Second},
		"a grant":                     {nil, []lock.Lease{lease(0, time.Minute)}, time.Minute},
		"a grant beside a lease":      {[]lock.Lease{lease(1, time.Second)}, []lock.Lease{lease(1, time.Second), lease(2, time.Minute)}, time.Minute},
		"a grant that shares a token": {
			[]lock.Lease{lease(1, 10*time.Second), lease(2, time.Hour)},
			[]lock.Lease{lease(1, 10*time.Second), lease(2, time.Hour), sharing(3, time.Minute)},
			10 * time.Second,
		},
		"a grant that shares the token of two, and of one that was revoked": {
			[]lock.Lease{lease(1, 10*time.Second), sharing(2, 30*time.Second), ousted},
			[]lock.Lease{lease(1, 10*time.Second), sharing(2, 30*time.Second), sharing(3, time.Minute), ousted},
			30 * time.Second,
		},
		"a grant after one that is over":        {[]lock.Lease{lease(0, 0)}, []lock.Lease{lease(0, time.Minute)}, time.Minute},
		"an unclaimed grant":                    {nil, []lock.Lease{unclaimed}, 2 * time.Second},
		"a revocation":                          {[]lock.Lease{lease(1, time.Minute)}, []lock.Lease{revoked}, 40 * time.Second},
		"the end of one that is over":           {[]lock.Lease{lease(1, 0)}, nil, 0},
		"nothing, beside leases that may be so": {[]lock.Lease{lease(1, time.Minute)}, []lock.Lease{lease(1, time.Minute)}, 0},
	} {
		want := pgtype.Timestamptz{Time: now.Add(c.want), Valid: true}
		if c.want == 0 {
			want = pgtype.Timestamptz{InfinityModifier: pgtype.Infinity, Valid: true}
		}
		ended, given := differing(c.before, c.after)
		if got := deadline(c.before, ended, given, now); got != want {
			t.Errorf("%s holds until %v, want %v", name, got, want)
		}
	}
}
