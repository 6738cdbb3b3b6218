package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/server"
)

// TestReadinessIsProbedOncePerSecond exists because clients without a key may call /readyz at any rate.
func TestReadinessIsProbedOncePerSecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked, bad atomic.Int64
		s, _, end := servePiped(t, server.Options{Ready: func(context.Context) error {
			asked.Add(1)
			time.Sleep(time.Second)
			if bad.Load() > 0 {
				return errors.New("hunter2")
			}
			return nil
		}})
		many := func(status int) {
			t.Helper()
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() { s.get("/readyz").want(t, status, nil) })
			}
			all.Wait()
		}
		many(http.StatusOK)
		bad.Store(1)
		many(http.StatusOK)
		if n := asked.Load(); n != 1 {
			t.Errorf("probed %d times", n)
		}
		time.Sleep(time.Second)
		many(http.StatusServiceUnavailable)
		bad.Store(0)
		time.Sleep(time.Second)
		many(http.StatusOK)
		if n := asked.Load(); n != 3 {
			t.Errorf("probed %d times", n)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestDisconnectedCallerDoesNotMakeTheReplicaUnready cancels a call to /readyz and makes another one.
func TestDisconnectedCallerDoesNotMakeTheReplicaUnready(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, _, end := servePiped(t, server.Options{Ready: func(ctx context.Context) error {
			time.Sleep(2 * time.Second)
			return ctx.Err()
		}})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if got, err := s.client.Do(s.request(http.MethodGet, "/readyz", "").WithContext(ctx)); err == nil {
			t.Errorf("answered %v", got)
		}
		s.get("/readyz").want(t, http.StatusOK, nil)
		if err := end(); err != nil {
			t.Error(err)
		}
	})
}

// TestReadinessSaysWhyWithoutSecrets reports what anybody may know of an error whose text may have a password.
func TestReadinessSaysWhyWithoutSecrets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("hunter2: %w", context.DeadlineExceeded), "This replica is not ready: its database does not answer in time."},
		{&net.OpError{Op: "dial", Err: errors.New("hunter2")}, "This replica is not ready: its database cannot be reached."},
		{errors.New("hunter2"), "This replica is not ready."},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, _, end := servePiped(t, server.Options{Ready: func(context.Context) error { return c.err }})
			s.get("/readyz").want(t, http.StatusServiceUnavailable,
				map[string]any{"detail": c.want + " Its log has more under this request_id. Use another replica."})
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}
