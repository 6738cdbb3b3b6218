package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client/guard"
	"github.com/paddock-lock/paddock/lock"
)

// accounts is a set, not in the order of names.
func accounts() []lock.Member {
	return []lock.Member{{Name: "b"}, {Name: "a"}, {Name: "c", Mode: lock.Shared}}
}

// acquireAll acquires the accounts over the faulty connection.
func (s *fixture) acquireAll(o guard.Options) *guard.Lease {
	s.Helper()
	l, err := guard.AcquireAll(s.Context(), s.service, accounts(), s.options(o))
	s.must(err)
	s.Cleanup(func() {
		s.service.setFault(fault{})
		if err := l.Release(s.Context()); err != nil && !errors.Is(err, lock.ErrLeaseLost) {
			s.Error(err)
		}
	})
	return l
}

// grantOtherAt grants locks to another client.
func (s *fixture) grantOtherAt(a lock.Acquire) lock.Grant {
	s.Helper()
	a.LeaseID, a.Holder = lock.LeaseID(uuid.New()), "another client"
	g, err := s.locks.Acquire(s.Context(), a)
	s.must(err)
	return g
}

// wantHeld checks which of the accounts have leases, and that no account has a waiter.
func (s *fixture) wantHeld(want ...string) {
	s.Helper()
	var held []string
	for _, name := range []string{"a", "b", "c"} {
		l, err := s.locks.Lock(context.WithoutCancel(s.Context()), name)
		s.must(err)
		if l.State != lock.Free {
			held = append(held, name)
		}
		if l.Waiters > 0 {
			s.Errorf("%s has %d waiters", name, l.Waiters)
		}
	}
	if !slices.Equal(held, want) {
		s.Errorf("%v are held, want %v", held, want)
	}
}

func TestASetHasOneRenewalAndIsReleasedAsAWhole(t *testing.T) {
	withFixture(t, func(s *fixture) {
		var r record
		reader := s.grantOtherAt(lock.Acquire{Locks: []lock.Member{{Name: "c", Mode: lock.Shared}}, TTL: time.Hour})
		l := s.acquireAll(guard.Options{Observer: &r})
		r.expect(s, "acquired a,b,c after 0s: <nil>")
		want := []guard.Member{
			{Name: "a", Mode: lock.Exclusive, Token: l.Token()}, {Name: "b", Mode: lock.Exclusive, Token: l.Token()},
			{Name: "c", Mode: lock.Shared, Slot: 2, Token: reader.Token},
		}
		if got := l.Members(); !slices.Equal(got, want) || l.Name() != "a" || l.Token() <= reader.Token {
			t.Errorf("the lease is of %q with token %d, its locks are %+v, want %+v", l.Name(), l.Token(), got, want)
		}
		if a, c, d := l.TokenOf("a"), l.TokenOf("c"), l.TokenOf("d"); a != l.Token() || c != reader.Token || d != 0 {
			t.Errorf("the tokens of a, c and d are %d, %d and %d", a, c, d)
		}
		time.Sleep(20 * ttl)
		s.must(l.Err())
		if n := len(s.service.sentAt("renew")); n < 3*20 || n > 4*20 {
			t.Errorf("%d renewals in 20 TTLs", n)
		}
		s.must(l.SetMetadata(s.Context(), []byte(`{"page":7}`)))
		for _, name := range []string{"a", "b", "c"} {
			now, err := s.locks.Lock(s.Context(), name)
			s.must(err)
			own := now.Leases[len(now.Leases)-1]
			if own.Remaining < ttl-time.Second || string(own.Metadata) != `{"page":7}` || !slices.Equal(own.Set, []string{"a", "b", "c"}) {
				t.Errorf("%s has the lease %+v", name, own)
			}
		}
		s.must(l.Release(s.Context()))
		s.wantHeld("c") // by the other reader
		s.wantStates(guard.Released)
		if n := len(r.lines); n-1 != len(s.service.sentAt("renew")) || r.lines[n-1] != "released after 10m0s: <nil>" {
			t.Errorf("after %d renewals the observer saw %d, and at last %q", len(s.service.sentAt("renew")), n-1, r.lines[n-1])
		}
	})
}

func TestASetIsLostAsAWhole(t *testing.T) {
	withFixture(t, func(s *fixture) {
		var r record
		o := s.options(guard.Options{Observer: &r})
		err := guard.DoAll(s.Context(), s.service, accounts(), o, func(ctx context.Context, l *guard.Lease) error {
			_, err := s.locks.Revoke(ctx, lock.Revoke{Name: "b", Token: l.TokenOf("b"), Reason: "stuck"})
			s.must(err)
			s.wantHeld() // the other locks ended, too
			<-ctx.Done()
			return nil
		})
		var e *lock.Error
		if !errors.As(err, &e) || e.Code != lock.ErrLeaseLost || e.Reason != "stuck" {
			t.Errorf("the work ended with %v", err)
		}
		s.wantStates(guard.Lost)
		if len(r.lines) != 3 || r.lines[0] != "acquired a,b,c after 0s: <nil>" || r.lines[2] != "lost: lease_lost" {
			t.Errorf("the observer saw %q", r.lines)
		}
	})
}

func TestAnUnmanagedSetIsRenewedByItsCaller(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g, err := guard.AcquireAllUnmanaged(s.Context(), s.service, accounts(), guard.Options{})
		s.must(err)
		if len(g.Leases) != 3 || g.Name != "a" {
			t.Fatalf("the grant is %+v", g)
		}
		_, err = s.locks.Renew(s.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: g.ID})
		s.wantError(err, lock.ErrLeaseInSet)
		_, err = s.locks.Renew(s.Context(), lock.Renew{Locks: []string{"c", "b", "a"}, LeaseID: g.ID})
		s.must(err)
		time.Sleep(ttl)
		s.wantHeld()
	})
}

// TestASetInASession needs no renewals, ends with the session, and its loss alone is found.
func TestASetInASession(t *testing.T) {
	withFixture(t, func(s *fixture) {
		g := s.openSession(guard.SessionOptions{})
		o := guard.Options{Session: g}
		kept, revoked := s.acquireIn(g, 1, guard.Options{}), s.acquireAll(o)
		rest, err := guard.AcquireAll(s.Context(), s.service, []lock.Member{{Name: "d"}, {Name: "e"}}, o)
		s.must(err)
		time.Sleep(time.Hour)
		if n := len(s.service.sentAt("renew")); n > 0 || !rest.Deadline().Equal(g.Deadline()) {
			t.Errorf("%d renewals; the set has the deadline %v, the session %v", n, rest.Deadline(), g.Deadline())
		}
		_, err = s.locks.Revoke(s.Context(), lock.Revoke{Name: "b", Token: revoked.Token(), Reason: "stuck"})
		s.must(err)
		time.Sleep(ttl / 3)
		synctest.Wait()
		if err := revoked.Err(); !errors.Is(err, lock.ErrLeaseLost) || kept.Err() != nil || rest.Err() != nil || g.Err() != nil {
			t.Errorf("the revoked set is %v, another %v, a lock %v, the session %v", err, rest.Err(), kept.Err(), g.Err())
		}
		s.must(g.Close(s.Context()))
		if err := rest.Err(); !errors.Is(err, lock.ErrLeaseLost) {
			t.Errorf("after the close the set is %v", err)
		}
	})
}

// TestALeaseHasSeveralPermits of a semaphore, and of one lock of a set.
func TestALeaseHasSeveralPermits(t *testing.T) {
	withFixture(t, func(s *fixture) {
		two := guard.NewSemaphore(s.service, name, 3, guard.Options{Permits: 2})
		l, err := two.Acquire(s.Context())
		s.must(err)
		if !slices.Equal(l.Slots(), []int{1, 2}) || l.Slot() != 1 || l.Members()[0].Slots != "1 2" || s.lockNow().PermitsOut() != 2 {
			t.Errorf("the lease has %v: %+v", l.Slots(), l.Members())
		}
		if _, err := two.Acquire(s.Context()); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("two more are answered with %v", err)
		}
		locks := []lock.Member{{Name: name}, {Name: "gpus", Mode: lock.Permit, Capacity: 8, Permits: 4}}
		all, err := guard.AcquireAll(s.Context(), s.service, locks, guard.Options{Mode: lock.Permit, Capacity: 3, Permits: 1})
		s.must(err)
		if m := all.Members(); m[0].Slots != "1 2 3 4" || m[1].Slot != 3 || m[1].Slots != "" || len(all.Slots()) != 4 {
			t.Errorf("the members are %+v", m)
		}
		s.must(all.Release(s.Context()))
		s.must(l.Release(s.Context()))
		if _, err := guard.NewSemaphore(s.service, name, 3, guard.Options{Permits: 4}).Acquire(s.Context()); err == nil ||
			!strings.Contains(err.Error(), "Permits is 4; give 1 to 3") {
			t.Errorf("four of three are answered with %v", err)
		}
	})
}

// TestASetOfOneIsThatLockAlone and takes the mode of the options, as members without one do.
func TestASetOfOneIsThatLockAlone(t *testing.T) {
	withFixture(t, func(s *fixture) {
		o := guard.Options{Mode: lock.Permit, Capacity: 2}
		l, err := guard.AcquireAll(s.Context(), s.service, []lock.Member{{Name: name}}, o)
		s.must(err)
		now := s.lockNow()
		if now.Leases[0].Set != nil || now.Capacity != 2 || !slices.Equal(l.Members(), []guard.Member{{Name: name, Mode: lock.Permit, Slot: 1, Token: l.Token()}}) {
			t.Errorf("the lock is %+v, the lease has %+v", now, l.Members())
		}
		s.must(l.Release(s.Context()))
		all, err := guard.AcquireAll(s.Context(), s.service, []lock.Member{{Name: "p"}, {Name: "q"}, {Name: "r", Mode: lock.Shared}}, o)
		s.must(err)
		if m := all.Members(); m[0].Mode != lock.Permit || m[1].Mode != lock.Permit || m[2].Mode != lock.Shared {
			t.Errorf("the members are %+v", m)
		}
		s.must(all.Release(s.Context()))
	})
}

func TestAnInvalidSetIsRefused(t *testing.T) {
	withFixture(t, func(s *fixture) {
		many := make([]lock.Member, lock.MaxSetSize+1)
		for i := range many {
			many[i].Name = fmt.Sprint("n:", i)
		}
		for field, members := range map[string][]lock.Member{
			"locks": nil, "locks/1/name": {{Name: "a"}, {Name: "a"}}, "locks/0/mode": {{Name: "a", Mode: 9}, {Name: "b"}}, "locks ": many,
		} {
			_, err := guard.AcquireAll(s.Context(), s.service, members, guard.Options{Wait: time.Second})
			var e *lock.Error
			if !errors.As(err, &e) || e.Code != lock.ErrInvalid || e.Field != field && e.Field+" " != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		if n := len(s.service.sentAt("release")); n > 0 {
			t.Errorf("%d releases were sent", n)
		}
	})
}
