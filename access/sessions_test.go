package access_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
)

// leasesAndPlaces are those of the spy's session.
var leasesAndPlaces = []lock.SessionLock{
	{Name: "billing:a", Mode: lock.Exclusive, Token: 41},
	{Name: "billing2", Mode: lock.Permit, Slot: 3, Token: 42},
	{Name: "other", Mode: lock.Shared, Place: 7},
}

func (s *spy) OpenSession(ctx context.Context, _ lock.OpenSession) (lock.SessionGrant, error) {
	return lock.SessionGrant{}, s.wait(ctx, "OpenSession", 0)
}
func (s *spy) RenewSession(ctx context.Context, _ lock.RenewSession) (lock.SessionGrant, error) {
	return lock.SessionGrant{}, s.wait(ctx, "RenewSession", 0)
}
func (s *spy) CloseSession(ctx context.Context, _ lock.CloseSession) error {
	return s.wait(ctx, "CloseSession", 0)
}
func (s *spy) RevokeSession(ctx context.Context, _ lock.RevokeSession) (lock.SessionInfo, error) {
	return lock.SessionInfo{}, s.wait(ctx, "RevokeSession", 0)
}
func (s *spy) Session(ctx context.Context, ref lock.SessionRef) (lock.SessionInfo, error) {
	return lock.SessionInfo{Ref: ref, Leases: 2, Places: 1, Locks: leasesAndPlaces}, s.wait(ctx, "Session", 0)
}
func (s *spy) Sessions(ctx context.Context, _ paddock.SessionQuery) (paddock.Page[lock.SessionInfo], error) {
	return paddock.Page[lock.SessionInfo]{}, s.wait(ctx, "Sessions", 0)
}

func TestSessionDoesNotRevealForeignLocks(t *testing.T) {
	t.Parallel()
	locks := access.Guard(newSpy(), access.Limits{})
	for name, c := range map[string]struct {
		prefixes []string
		want     []lock.SessionLock
	}{
		"a key without prefixes": {nil, leasesAndPlaces},
		"a key for one of them": {[]string{"billing"}, []lock.SessionLock{
			leasesAndPlaces[0], {Name: "(not covered)", Mode: lock.Permit}, {Name: "(not covered)", Mode: lock.Shared},
		}},
		"a key for none": {[]string{"jobs"}, []lock.SessionLock{
			{Name: "(not covered)", Mode: lock.Exclusive}, {Name: "(not covered)", Mode: lock.Permit}, {Name: "(not covered)", Mode: lock.Shared},
		}},
	} {
		got, err := locks.Session(withKey(t, access.Read, c.prefixes...), 7)
		if diff := cmp.Diff(c.want, got.Locks); err != nil || diff != "" || got.Leases != 2 || got.Places != 1 {
			t.Errorf("%s: %v, %+v, %s", name, err, got, diff)
		}
	}
}

// TestSessionIsKeptAliveBeyondTheRate: renewing and closing a session have the limit of renewals, not that of
// acquires.
func TestSessionIsKeptAliveBeyondTheRate(t *testing.T) {
	t.Parallel()
	locks := access.Guard(newSpy(), access.Limits{Rate: 0.001, Burst: 1})
	ctx := withKey(t, access.Lock)
	if err := errOf(locks.OpenSession(ctx, lock.OpenSession{})); err != nil {
		t.Error(err)
	}
	if err := errOf(locks.OpenSession(ctx, lock.OpenSession{})); !errors.Is(err, lock.ErrRateLimited) {
		t.Errorf("a second session: %v", err)
	}
	if err := errOf(locks.RenewSession(ctx, lock.RenewSession{})); err != nil {
		t.Error(err)
	}
	if err := locks.CloseSession(ctx, lock.CloseSession{}); !errors.Is(err, lock.ErrRateLimited) {
		t.Errorf("closing it, after as many renewals as allowed: %v", err)
	}
}
