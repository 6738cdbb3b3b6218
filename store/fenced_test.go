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

// TestFloodOfStaleWritesIsRecordedUpToTheLimit writes under more stale tokens than a replica records in a minute, several
// times each.
func TestFloodOfStaleWritesIsRecordedUpToTheLimit(t *testing.T) {
	t.Parallel()
	s := open(t, pgtest.URL(t))
	var stale []lock.Token
	for range lock.MaxStaleReports + 50 {
		g := mustAcquire(t, s, acquire("a"))
		mustRelease(t, s, g)
		stale = append(stale, g.Token)
	}
	mustAcquire(t, s, acquire("a"))
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for n := range 2 * len(stale) / 4 {
				w := lock.FencedWrite{Key: "k", Lock: "a", Token: stale[(4*n+i)%len(stale)], Value: []byte("1")}
				if _, err := s.WriteFenced(t.Context(), w); !errors.Is(err, lock.ErrStaleToken) {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	recorded := map[lock.Token]int{}
	q := lock.EventQuery{Name: "a", Kinds: []lock.Kind{lock.Refused}, Limit: lock.MaxLimit, Descending: true}
	for {
		page, err := s.Events(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			if recorded[e.Token]++; e.Holder == "" || e.HeldBy == "" {
				t.Errorf("the refusal is %+v", e)
			}
		}
		if q.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	total := 0
	for token, n := range recorded {
		if total += n; n > 2 { // a minute may have passed
			t.Errorf("token %d is recorded %d times", token, n)
		}
	}
	if total < lock.MaxStaleReports || total > 2*lock.MaxStaleReports {
		t.Errorf("%d stale writes are recorded, the limit is %d", total, lock.MaxStaleReports)
	}
}
