package access_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// TestTasksOfTwoKeysAreDifferent: a call waits for a lock that a task with the same id holds. Of the same key that is a
// deadlock; of another key it is a wait. The key of a task cannot be given in its id, and is the
// same for the acquires of a batch and for those of a session.
func TestTasksOfTwoKeysAreDifferent(t *testing.T) {
	t.Parallel()
	locks := access.Guard(memlock.New().Replica(1), access.Limits{})
	with := func(id string) context.Context {
		return access.WithKey(t.Context(), access.Key{ID: id, Name: "ci", Role: access.Lock})
	}
	session, err := locks.OpenSession(with("one"), lock.OpenSession{ID: lock.SessionID(uuid.New()), Holder: "h"})
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]lock.Acquire{
		"alone":   {Locks: lock.One("alone"), Holder: "h", Task: "t17"},
		"batch":   {Locks: lock.One("batch"), Holder: "h", Task: "t17"},
		"session": {Locks: lock.One("session"), Holder: "h", SessionID: session.ID},
	}
	for name, a := range held {
		if a.LeaseID = lock.LeaseID(uuid.New()); name == "batch" {
			err = locks.Batch(with("one"), []lock.Command{a})[0].Err
		} else {
			_, err = locks.Acquire(with("one"), a)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, a := range held {
		for key, want := range map[string]error{"one": lock.ErrDeadlock, "two": lock.ErrHeld} {
			a.LeaseID, a.Wait = lock.LeaseID(uuid.New()), 20*time.Millisecond
			if _, err := locks.Acquire(with(key), a); !errors.Is(err, want) {
				t.Errorf("%s: with the key %s, the wait is answered with %v, want %v", name, key, err, want)
			}
		}
	}
	forged := lock.Acquire{Locks: lock.One("alone"), LeaseID: lock.LeaseID(uuid.New()), Holder: "h", Task: "one/t17", Wait: 20 * time.Millisecond}
	if _, err := locks.Acquire(with("two"), forged); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("the id with the key is answered with %v", err)
	}
}
