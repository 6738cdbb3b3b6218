package store_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestFencedWritesLeaveRoomForRenewals: writers who shared the lock's row would
// keep it from ever being free for a decision.
func TestFencedWritesLeaveRoomForRenewals(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	s := open(t, url)
	g := mustAcquire(t, s, acquire("a"))
	done := make(chan struct{})
	var writers sync.WaitGroup
	for range 12 {
		writers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				_, err := s.WriteFenced(t.Context(), lock.FencedWrite{Key: "k", Lock: "a", Token: g.Token, Value: []byte("1")})
				if err != nil && !errors.Is(err, lock.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
	for range 50 {
		if _, err := s.Renew(t.Context(), lock.Renew{Name: "a", LeaseID: g.ID}); err != nil {
			t.Error(err)
		}
		mustRelease(t, s, mustAcquire(t, s, acquire("another")))
	}
	close(done)
	writers.Wait()
	if f, err := s.ReadFenced(t.Context(), "k"); err != nil || f.Version == 0 {
		t.Errorf("the writers got to version %d, %v", f.Version, err)
	}
}
