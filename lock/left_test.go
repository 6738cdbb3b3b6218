package lock_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// renewals of what began with a TTL of a minute. Each leaves the later end, so after a fail-over it must have at least
// what was left: its length.
var renewals = []struct {
	after, ttl time.Duration // since the beginning; zero: the TTL stays
	length     time.Duration
	ends       time.Duration // since the beginning
}{
	{after: 10 * time.Second, ttl: time.Second, length: 50 * time.Second, ends: time.Minute},
	{after: 20 * time.Second, length: 40 * time.Second, ends: time.Minute},
	{after: 59 * time.Second, length: time.Second, ends: time.Minute},
	{after: 59*time.Second + 1, length: time.Second, ends: time.Minute + 1},
	{after: 60 * time.Second, ttl: 10 * time.Second, length: 10 * time.Second, ends: 70 * time.Second},
}

func TestALeaseSaysWhatAShorterRenewalLeft(t *testing.T) {
	t.Parallel()
	id := lock.LeaseID{15: 1}
	r := lock.Record{Name: "a", Leases: []lock.Lease{{
		ID: id, Name: "a", Mode: lock.Exclusive, Holder: "h", Token: 1, TTL: time.Minute, Grace: time.Hour, AcquiredAt: t0, ExpiresAt: t0.Add(time.Minute),
	}}}
	for _, x := range renewals {
		d := lock.Renew{Locks: []string{"a"}, LeaseID: id, TTL: x.ttl}.Apply(lock.View{Now: t0.Add(x.after), Locks: []lock.Record{r}})
		if d.Err != nil {
			t.Fatal(d.Err)
		}
		r = d.Locks[0]
		if l := r.Leases[0]; l.Length() != x.length || !l.ExpiresAt.Equal(t0.Add(x.ends)) {
			t.Errorf("renewed after %v it has %v and ends after %v, want %v and %v", x.after, l.Length(), l.ExpiresAt.Sub(t0), x.length, x.ends)
		}
	}
	d := lock.Renew{Locks: []string{"a"}, LeaseID: id, TTL: time.Second}.Apply(lock.View{Now: t0.Add(61 * time.Second), Locks: []lock.Record{r}})
	d = lock.Revoke{Name: "a", Token: 1, Reason: "r"}.Apply(lock.View{Now: t0.Add(62 * time.Second), Locks: d.Locks})
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	if all := d.Locks[0].Leases; len(all) != 1 || all[0].Length() != 0 {
		t.Errorf("revoked, the leases are %+v; after a fail-over only the grace is left", all)
	}
}

func TestASessionSaysWhatAShorterRenewalLeft(t *testing.T) {
	t.Parallel()
	s, _, err := lock.OpenSession{ID: sessionID, Holder: "h", TTL: time.Minute}.Change(nil, t0)
	for _, x := range renewals {
		if err == nil {
			s, _, err = lock.RenewSession{ID: sessionID, TTL: x.ttl}.Change(&s, t0.Add(x.after))
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.Length() != x.length || !s.ExpiresAt.Equal(t0.Add(x.ends)) {
			t.Errorf("renewed after %v it has %v and ends after %v, want %v and %v", x.after, s.Length(), s.ExpiresAt.Sub(t0), x.length, x.ends)
		}
	}
}
