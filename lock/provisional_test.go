package lock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestPermitsAreGrantedInPortions: no decision has more than MaxTokens tokens, and each says that the next one is due.
func TestPermitsAreGrantedInPortions(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := lock.Record{Name: "a", Revision: 1, Token: 7, ChangedAt: now.Add(-time.Hour)}
	const waiters = lock.MaxHolders
	for i := range waiters {
		w := &lock.Waiter{
			Place: int64(i + 1), Attachment: lock.Attachment(i + 1), Replica: 1, WaitUntil: now.Add(time.Hour), Capacity: waiters,
			Lease: lock.Lease{Name: "a", Mode: lock.Permit, TTL: time.Hour},
		}
		w.Lease.ID[0], w.Lease.ID[1] = byte(i), byte(i>>8)
		r.Queue = append(r.Queue, w)
	}
	last, decisions := r.Token, 0
	for len(r.Queue) > 0 {
		drawn := 0
		d := lock.Sweep{Locks: []string{"a"}}.Apply(lock.View{Now: now, Self: 1, Locks: []lock.Record{r}, Tokens: func() lock.Token {
			drawn++
			return lock.Provisional(drawn - 1)
		}})
		if decisions++; drawn == 0 || drawn > lock.MaxTokens || decisions > waiters {
			t.Fatalf("decision %d has drawn %d tokens", decisions, drawn)
		}
		d.SetTokens(last + 1)
		if last, r = last+lock.Token(drawn), d.Locks[0]; len(r.Queue) > 0 && (d.Due.IsZero() || d.Due.After(now)) {
			t.Fatalf("%d waiters are left, and the next decision is due at %v", len(r.Queue), d.Due)
		}
	}
	seen := map[lock.Token]bool{}
	for _, l := range r.Leases {
		if seen[l.Token] || l.Token <= 7 || l.Token > 7+waiters {
			t.Errorf("%d leases, token %d a second time, or too great", len(r.Leases), l.Token)
		}
		seen[l.Token] = true
	}
}

// TestAReportIsComparedWithAKnownToken: a token that was never granted is not stale because the decision grants the
// lock to a waiter, with a token that is not known yet.
func TestAReportIsComparedWithAKnownToken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := lock.Record{Name: "a", Revision: 1, Token: 7, ChangedAt: now.Add(-time.Hour)}
	r.Queue = []*lock.Waiter{{Place: 1, Attachment: 1, Replica: 1, WaitUntil: now.Add(time.Hour), Lease: lock.Lease{
		ID: lock.LeaseID{1}, Name: "a", Mode: lock.Exclusive, TTL: time.Hour}}}
	v := lock.View{Now: now, Self: 1, Locks: []lock.Record{r}, Tokens: func() lock.Token { return lock.Provisional(0) }}
	for token, want := range map[lock.Token]error{7: nil, 8: lock.ErrUnknownToken, lock.MaxToken: lock.ErrUnknownToken} {
		d := lock.ReportStale{Name: "a", Token: token}.Apply(v)
		if len(d.Promoted) != 1 || !errors.Is(d.Err, want) || want == nil && d.Err != nil {
			t.Errorf("token %d: %d waiters are promoted, and it is answered with %v, want %v", token, len(d.Promoted), d.Err, want)
		}
	}
}

// TestNoRefusalSaysAProvisionalToken: a refusal has the tokens that were granted in fields, where they are replaced when
// they are known, and not in its text.
func TestNoRefusalSaysAProvisionalToken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := lock.Record{Name: "a", Revision: 1, Token: 7, ChangedAt: now.Add(-time.Hour)}
	r.Queue = []*lock.Waiter{{Place: 1, Attachment: 1, Replica: 1, WaitUntil: now.Add(time.Hour), Lease: lock.Lease{
		ID: lock.LeaseID{1}, Name: "a", Mode: lock.Exclusive, Holder: "h", TTL: time.Hour}}}
	v := lock.View{Now: now, Self: 1, Locks: []lock.Record{r}, Tokens: func() lock.Token { return lock.Provisional(0) }}
	d := lock.Revoke{Name: "a", Token: 3, Reason: "stuck"}.Apply(v)
	d.SetTokens(512)
	const want = `Token 3 does not hold the lock; "h" holds it now with another token. Read the lock again before you revoke.`
	var e *lock.Error
	if !errors.As(d.Err, &e) || e.Detail != want || e.Token != 3 || e.Newest != 512 || len(d.Promoted) != 1 {
		t.Errorf("got %+v, want %s", d.Err, want)
	}
	if n := lock.Provisional(0); !n.IsProvisional() || lock.MaxToken.IsProvisional() || lock.MaxToken.Known(1) != lock.MaxToken {
		t.Error("a known token is provisional, or a provisional one is known")
	}
}
