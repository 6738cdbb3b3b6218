package verify_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// A cutting service is behind a proxy that closes each connection after two seconds. If drops is set, the place of a
// waiter ends with its connection.
type cutting struct {
	paddock.Service
	drops bool
}

func (s cutting) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	ctx, cut := context.WithTimeout(ctx, 2*time.Second)
	defer cut()
	g, err := s.Service.Acquire(ctx, a)
	if err == nil || ctx.Err() == nil {
		return g, err
	}
	if s.drops {
		err = s.Release(context.WithoutCancel(ctx), lock.Release{Locks: []string{a.Locks[0].Name}, LeaseID: a.LeaseID})
	}
	return g, errors.Join(&lock.Error{Code: lock.ErrUnknownOutcome}, err)
}

// TestPlacesThatEndWithTheirConnectionsAreFound: two clients wait for seven seconds and repeat calls that are cut. They
// are granted the lock in their order, and only the check of places finds what is wrong.
func TestPlacesThatEndWithTheirConnectionsAreFound(t *testing.T) {
	for name, drops := range map[string]bool{"places that stay": false, "places that end": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, rec := memlock.New(), verify.NewRecorder()
				direct := rec.Client(via, memory.Replica(1))
				held := lock.Acquire{Locks: lock.One("a"), LeaseID: lock.LeaseID(uuid.New()), Holder: "first", TTL: time.Minute}
				acquired(t, direct, held)
				done := make(chan lock.Acquire, 2)
				for _, holder := range []string{"second", "third"} {
					s := rec.Client(via, cutting{memory.Replica(1), drops})
					a := lock.Acquire{Locks: lock.One("a"), LeaseID: lock.LeaseID(uuid.New()), Holder: holder, TTL: time.Minute, Wait: 30 * time.Second}
					go func() {
						acquired(t, s, a)
						done <- a
					}()
					time.Sleep(100 * time.Millisecond)
				}
				time.Sleep(7 * time.Second)
				for range 2 {
					release(t, direct, held)
					held = <-done
				}
				release(t, direct, held)
				h := rec.History()
				var err error
				if h.Events, err = verify.Collect(t.Context(), memory.Replica(1), ""); err != nil {
					t.Fatal(err)
				}
				r := h.Check(verify.CheckOptions{})
				for _, check := range r.Checks {
					if found := len(check.Violations) > 0; found != (drops && check.Name == byPlaces) {
						t.Errorf("%s: found %t\n%s", check.Name, found, text(t, r))
					}
				}
			})
		})
	}
}

// acquired acquires the lock, and repeats the call while its answer is lost.
func acquired(t *testing.T, s paddock.Service, a lock.Acquire) {
	t.Helper()
	for {
		_, err := s.Acquire(t.Context(), a)
		if err == nil {
			return
		}
		if !errors.Is(err, lock.ErrUnknownOutcome) {
			t.Error(err)
			return
		}
	}
}

func release(t *testing.T, s paddock.Service, a lock.Acquire) {
	t.Helper()
	if err := s.Release(t.Context(), lock.Release{Locks: []string{a.Locks[0].Name}, LeaseID: a.LeaseID}); err != nil {
		t.Error(err)
	}
}
