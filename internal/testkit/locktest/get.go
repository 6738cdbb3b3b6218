package locktest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

func getCases() cases {
	return cases{
		"an unused lock is free":                         getUnused,
		"reading a lock does not create it":              getCreatesNothing,
		"a held lock shows its lease":                    getHeld,
		"the remaining time agrees with the instants":    getInstants,
		"each transition increments the revision by one": getRevision,
		"public views contain no secret":                 getHidesSecrets,
	}
}

func getUnused(s *fixture) {
	l := s.get(s.name)
	if l.Name != s.name || l.State != lock.Free || l.Revision != 0 || l.Token != 0 || len(l.Leases) != 0 {
		s.Errorf("a lock never used is %+v", l)
	}
	if l.AsOf.IsZero() || !l.ChangedAt.IsZero() {
		s.Errorf("it is shown as of %v and changed at %v", l.AsOf, l.ChangedAt)
	}
}

func getCreatesNothing(s *fixture) {
	s.get(s.name)
	if got := s.names(lock.LockQuery{Prefix: s.name}); len(got) != 0 {
		s.Errorf("the list has %v", got)
	}
}

func getHeld(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Holder: "first", Grace: time.Second, Metadata: []byte(`{"a":[1,2]}`)})
	l := s.get(s.name)
	if l.State != lock.Held || l.Token != g.Token || l.Revision != 1 || len(l.Leases) != 1 {
		s.Fatalf("the lock is %+v", l)
	}
	h := l.Leases[0]
	if h.Slot != 0 || h.Mode != lock.Exclusive || h.Holder != "first" || h.Token != g.Token || h.Grace != time.Second ||
		!isNear(h.AcquiredAt, g.AcquiredAt) || !isNear(h.ExpiresAt, g.ExpiresAt) ||
		!sameJSON(h.Metadata, g.Metadata) {
		s.Errorf("the lease %+v is shown as %+v", g.Lease, h)
	}
}

func getInstants(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	l := s.get(s.name)
	if !isNear(l.ChangedAt, g.AcquiredAt) {
		s.Errorf("the lock changed at %v, want the grant's %v", l.ChangedAt, g.AcquiredAt)
	}
	if l.AsOf.Before(g.AcquiredAt) {
		s.Errorf("the lock is shown as of %v, before the grant at %v", l.AsOf, g.AcquiredAt)
	}
	if want := l.Leases[0].ExpiresAt.Sub(l.AsOf); (l.Leases[0].Remaining - want).Abs() > 2*time.Millisecond {
		s.Errorf("%v remain, want the %v between the instants", l.Leases[0].Remaining, want)
	}
}

func getRevision(s *fixture) {
	steps := []func(){
		func() { s.mustAcquire(lock.Acquire{LeaseID: newID()}) },
		func() { s.mustRevoke(lock.Grant{Lease: lock.Lease{Token: s.get(s.name).Token}}) },
		func() { s.mustAcquire(lock.Acquire{}) },
	}
	for i, step := range steps {
		step()
		if l := s.get(s.name); l.Revision != int64(i+1) {
			s.Fatalf("after %d transitions the revision is %d", i+1, l.Revision)
		}
	}
}

func getHidesSecrets(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	replaced := s.acquireAndRelease(lock.Acquire{Name: s.name + ":b"})
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name})
	s.must(err)
	s.expectNoSecret([]any{page, s.get(s.name), s.events(s.name, 1), s.events(s.name+":b", 2)}, g.ID, replaced.ID)
}

// expectNoSecret ends the test if a public view contains one of the lease_ids.
func (s *fixture) expectNoSecret(shown []any, ids ...lock.LeaseID) {
	s.Helper()
	seen := fmt.Sprintf("%+v", shown)
	text, err := json.Marshal(shown)
	s.must(err)
	for _, id := range ids {
		for _, secret := range []string{uuid.UUID(id).String(), hex.EncodeToString(id[:]), fmt.Sprintf("%v", [16]byte(id))} {
			if strings.Contains(seen+string(text), secret) {
				s.Errorf("a lease_id is shown in %s", seen)
			}
		}
	}
}
