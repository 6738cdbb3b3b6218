package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestACallThatFindsNothingCreatesNothing: a call on a lock that was never used, and a call that is refused whatever
// the state of its locks, leave no row behind.
func TestACallThatFindsNothingCreatesNothing(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	declares, s, outside := open(t, url), open(t, url), connect(t, url)
	if _, err := declares.DeclareTree(t.Context(), "tree"); err != nil {
		t.Fatal(err)
	}
	calls := callsOnNothing(t)
	if err := calls["a permit in a tree"].call(s); !errors.Is(err, lock.ErrInvalid) { // s learns of the tree by this call
		t.Errorf("a permit in a tree: %v", err)
	}
	for what, c := range calls {
		if err := c.call(s); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if n := number(t, outside, "select (select count(*) from paddock.records) + (select count(*) from paddock.fenced)"); n != 0 {
			t.Fatalf("%s left %d rows", what, n)
		}
	}
}

// A callOnNothing is a call on locks that were never used, and what it is refused with.
type callOnNothing struct {
	call func(*store.Store) error
	want error
}

func callsOnNothing(t *testing.T) map[string]callOnNothing {
	id := newID()
	acquire := func(a lock.Acquire) func(*store.Store) error {
		return func(s *store.Store) error {
			a.LeaseID, a.Holder = id, "h"
			_, err := s.Acquire(t.Context(), a)
			return err
		}
	}
	return map[string]callOnNothing{
		"a permit in a tree":      {acquire(lock.Acquire{Locks: []lock.Member{{Name: "tree:a", Mode: lock.Permit, Capacity: 2}}}), lock.ErrInvalid},
		"one that waits":          {acquire(lock.Acquire{Locks: []lock.Member{{Name: "tree:a", Mode: lock.Permit, Capacity: 2}}, Wait: time.Minute}), lock.ErrInvalid},
		"too many levels":         {acquire(lock.Acquire{Locks: lock.One("tree:1:2:3:4:5:6:7:8")}), lock.ErrInvalid},
		"a set, shared and below": {acquire(lock.Acquire{Locks: []lock.Member{{Name: "tree:a", Mode: lock.Shared}, {Name: "tree:a:b"}}}), lock.ErrInvalid},
		"a capacity":              {acquire(lock.Acquire{Locks: []lock.Member{{Name: "a", Mode: lock.Permit, Capacity: lock.MaxHolders + 1}}}), lock.ErrInvalid},
		"a renewal": {func(s *store.Store) error {
			_, err := s.Renew(t.Context(), lock.Renew{Locks: []string{"a"}, LeaseID: id})
			return err
		}, lock.ErrLeaseLost},
		"a renewal in a tree": {func(s *store.Store) error {
			_, err := s.Renew(t.Context(), lock.Renew{Locks: []string{"tree:a:b"}, LeaseID: id})
			return err
		}, lock.ErrLeaseLost},
		"a release": {func(s *store.Store) error {
			return s.Release(t.Context(), lock.Release{Locks: []string{"a"}, LeaseID: id})
		}, lock.ErrLeaseLost},
		"that of a set": {func(s *store.Store) error {
			return s.Release(t.Context(), lock.Release{Locks: []string{"a", "b"}, LeaseID: id})
		}, lock.ErrLeaseLost},
		"of a whole batch": {func(s *store.Store) error {
			return s.Batch(t.Context(), []lock.Command{lock.Release{Locks: []string{"a"}, LeaseID: id}})[0].Err
		}, lock.ErrLeaseLost},
		"a revocation": {func(s *store.Store) error {
			_, err := s.Revoke(t.Context(), lock.Revoke{Name: "a", Token: 1, Reason: "test"})
			return err
		}, lock.ErrTokenMismatch},
		"a look":  {func(s *store.Store) error { _, err := s.Lock(t.Context(), "a"); return err }, nil},
		"a queue": {func(s *store.Store) error { _, err := s.Queue(t.Context(), "a"); return err }, nil},
		"a verification": {func(s *store.Store) error {
			_, err := s.VerifyToken(t.Context(), lock.Verify{Name: "a", Token: 1})
			return err
		}, nil},
		"a report": {func(s *store.Store) error {
			_, err := s.ReportStale(t.Context(), lock.ReportStale{Name: "a", Token: 1})
			return err
		}, lock.ErrUnknownToken},
		"a fenced write": {func(s *store.Store) error {
			_, err := s.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "a", Token: 1, Value: []byte("1")})
			return err
		}, lock.ErrUnknownToken},
		"a session": {func(s *store.Store) error {
			return s.CloseSession(t.Context(), lock.CloseSession{ID: lock.SessionID(uuid.New())})
		}, lock.ErrSessionLost},
	}
}
