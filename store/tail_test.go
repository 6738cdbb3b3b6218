package store

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

func TestNoMoreMayWatchThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	tail := newTail()
	for range maxWatchers {
		if err := tail.enter(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tail.enter(); !errors.Is(err, lock.ErrTooManyWaiters) {
		t.Errorf("one more gave %v, want too_many_waiters", err)
	}
	tail.leave()
	if err := tail.enter(); err != nil {
		t.Errorf("when one had left the next was refused: %v", err)
	}
}

// TestWhoFollowsIsNotToldLessThanWasTold plays a tail that has read the first event of a lock and
// is about to read the second, which a page has shown.
func TestWhoFollowsIsNotToldLessThanWasTold(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	g, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "h"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), lock.Release{Name: "a", LeaseID: g.ID}); err != nil {
		t.Fatal(err)
	}
	page, err := s.Events(t.Context(), lock.EventQuery{Name: "a"})
	if err != nil || len(page.Items) != 2 {
		t.Fatalf("the page is %+v, %v", page, err)
	}
	s.tail.add(nil, 0)
	s.tail.add(page.Items[:1], page.Items[0].ID)
	page, err = s.Events(t.Context(), lock.EventQuery{Name: "a", Wait: time.Minute / 2})
	if err != nil || len(page.Items) != 2 {
		t.Errorf("who follows is told %+v, %v", page.Items, err)
	}
}
