package faults_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/pgcluster"
)

// suspectOutlivesFailOver: a lease that does not end by itself is refused until the database commits by quorum. Then a
// fail-over keeps it, and no other client is granted its lock until an operator revokes it.
func suspectOutlivesFailOver(t *testing.T, program string) {
	s := newClusterHarness(t, program, pgcluster.Options{Synchronous: quorum})
	s.serve(2, s.cluster.URL(), "--migrate")
	const name = "ledger"
	a := lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID(uuid.New()), Holder: "half-done work", TTL: lock.MinTTL, Stays: true}
	for i := range s.services {
		if e := (*lock.Error)(nil); !errors.As(s.tryLock(i, a), &e) || e.Code != lock.ErrInvalid || e.Field != "on_expiry" {
			t.Errorf("without a quorum replica %d answers %v", i, e)
		}
	}
	s.must(s.runPaddock(t.Context(), "epoch", "quorum", "on"))
	s.eventually("the lease is granted under quorum", func() bool { return s.tryLock(0, a) == nil })
	before := s.awaitSuspect(name)

	s.must(s.failOver(t.Context()))
	after := s.awaitSuspect(name)
	if after.Token != before.Token || len(after.Leases) != 1 || after.Leases[0].Holder != a.Holder {
		t.Errorf("after the fail-over the lock is %+v, before it was %+v", after, before)
	}
	for i := range s.services {
		free := lock.Acquire{Locks: lock.One(fmt.Sprint("free:", i)), LeaseID: lock.LeaseID(uuid.New()), Holder: "another client", TTL: keptTTL}
		s.eventually("the replica grants other locks", func() bool { return s.tryLock(i, free) == nil })
		other := lock.Acquire{Locks: lock.One(name), LeaseID: lock.LeaseID(uuid.New()), Holder: "another client", TTL: keptTTL}
		if err := s.tryLock(i, other); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("replica %d answers another client with %v", i, err)
		}
	}
	s.must(s.retryCall(func(ctx context.Context) error {
		_, err := s.first().Revoke(ctx, lock.Revoke{Name: name, Token: before.Token, Reason: "the work was looked at"})
		return err
	}))
	if g, _, _ := s.acquireUntilGranted(name, 0); g.Token <= before.Token {
		t.Errorf("after the revocation token %d was granted, after %d", g.Token, before.Token)
	}
}

// tryLock acquires once.
func (s *clusterHarness) tryLock(i int, a lock.Acquire) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
	defer cancel()
	_, err := s.replica(i).Acquire(ctx, a)
	return err
}

// awaitSuspect waits until all replicas show the lock as suspect, and returns what the last one shows.
func (s *clusterHarness) awaitSuspect(name string) (l lock.Lock) {
	s.t.Helper()
	for i := range s.services {
		s.eventually("the lock is suspect", func() bool {
			ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
			defer cancel()
			var err error
			l, err = s.replica(i).Lock(ctx, name)
			return err == nil && l.State == lock.Suspect
		})
	}
	return l
}
