package store

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
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

// TestSubscribersToEverythingShareTheTail checks what each subscriber is given, and that only those to everything are
// given the tail's own memory, of which they cannot append to any.
func TestSubscribersToEverythingShareTheTail(t *testing.T) {
	t.Parallel()
	tail := []lock.Event{{ID: 1, Name: "a:1"}, {ID: 2, Name: "b"}, {ID: 3, Name: "a:2"}, {ID: 4, Name: "a:1"}}
	for name, c := range map[string]struct {
		query  lock.EventQuery
		ids    []int64
		shared bool
	}{
		"everything":       {lock.EventQuery{Limit: 9}, []int64{1, 2, 3, 4}, true},
		"the first two":    {lock.EventQuery{Limit: 2}, []int64{1, 2}, true},
		"a lock":           {lock.EventQuery{Limit: 9, Name: "a:1"}, []int64{1, 4}, false},
		"a prefix":         {lock.EventQuery{Limit: 9, Prefix: "a:"}, []int64{1, 3, 4}, false},
		"one of a prefix":  {lock.EventQuery{Limit: 1, Prefix: "a:"}, []int64{1}, false},
		"what is not told": {lock.EventQuery{Limit: 9, Name: "c"}, nil, false},
	} {
		got := selected(tail, c.query)
		var ids []int64
		for _, e := range got {
			ids = append(ids, e.ID)
		}
		if !slices.Equal(ids, c.ids) {
			t.Errorf("%s: told %v, want %v", name, ids, c.ids)
		}
		if shared := len(got) > 0 && &got[0] == &tail[0]; shared != c.shared || c.shared && cap(got) != len(got) {
			t.Errorf("%s: shared is %t, with room for %d", name, shared, cap(got)-len(got))
		}
	}
}
