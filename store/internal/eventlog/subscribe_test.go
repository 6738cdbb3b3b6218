package eventlog

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

func TestSubscribersAreLimited(t *testing.T) {
	t.Parallel()
	tail := newTail()
	for range maxSubscribers {
		if err := tail.enter(); err != nil {
			t.Fatal(err)
		}
	}
	if err := tail.enter(); !errors.Is(err, lock.ErrTooManyWaiters) {
		t.Errorf("one more: %v, want too_many_waiters", err)
	}
	tail.leave()
	if err := tail.enter(); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}

// TestTailKeepsTheNewestItems fills the tail beyond its length, with events and entries that cannot be read.
func TestTailKeepsTheNewestItems(t *testing.T) {
	t.Parallel()
	tail := newTail()
	tail.add(segment{}, bound{epoch: 1, upTo: 100, newest: 100})
	const n = 3 * tailLength
	for id := int64(101); id <= 100+n; id++ {
		next := item{Event: &lock.Event{ID: id}}
		if id%2 == 0 {
			next.unreadable = &paddock.Unreadable{}
		}
		tail.add(segment{items: []item{next}, upTo: id}, bound{epoch: 1, upTo: 100 + n, newest: 100 + n})
	}
	if s, known, _ := tail.since(100); known {
		t.Errorf("a subscriber that is far behind gets %d items", len(s.items))
	}
	s, known, _ := tail.since(100 + n - tailLength)
	if !known || len(s.items) != tailLength || s.upTo != 100+n || !s.end || s.gap || len(tail.items) > 2*tailLength {
		t.Errorf("the tail has %d of %d items, up to %d", len(s.items), len(tail.items), s.upTo)
	}
	if s, known, _ := tail.since(100 + n + 5); !known || len(s.items) > 0 || s.upTo != 100+n+5 {
		t.Errorf("ahead of the tail: %+v", s)
	}
}

// TestTailBeginsAnew when the database has lost events, as an earlier end or another epoch shows.
func TestTailBeginsAnew(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]bound{
		"another epoch":  {epoch: 2, upTo: 300, newest: 300},
		"an earlier end": {epoch: 1, upTo: 150, newest: 150},
	} {
		tail := newTail()
		tail.add(segment{}, bound{epoch: 1, upTo: 100, newest: 100})
		tail.add(segment{items: []item{{Event: &lock.Event{ID: 200}}}, upTo: 200}, bound{epoch: 1, upTo: 200, newest: 200})
		_, known, change := tail.since(199)
		if !known {
			t.Fatal("the tail has not the last event")
		}
		sub := sleeper(t, tail, "other", 200, change)
		tail.add(segment{items: []item{{Event: &lock.Event{ID: 250}}}, upTo: 250}, b)
		if s, known, _ := tail.since(b.upTo); !known || len(s.items) > 0 || s.upTo != b.upTo {
			t.Errorf("%s: %+v", name, s)
		}
		if _, known, _ := tail.since(b.upTo - 1); known {
			t.Errorf("%s: it has events from before", name)
		}
		if !awake(sub) || tail.stop(sub) != 200 {
			t.Errorf("%s: a subscriber sleeps on, without events up to %d", name, sub.upTo)
		}
	}
}

// sleeper returns a subscriber of the name that sleeps after the id.
func sleeper(t *testing.T, tail *tail, name string, id int64, change int) *subscriber {
	t.Helper()
	sub := &subscriber{query: paddock.EventQuery{Names: []string{name}}, wake: make(chan struct{}, 1)}
	if !tail.listen(sub, id, change) {
		t.Fatal("the tail has changed")
	}
	return sub
}

func awake(s *subscriber) bool { return len(s.wake) > 0 }

// TestSubscribersSeeWhatPagesHaveShown has a tail that was read up to the first event of a lock, while a page has
// shown the second one.
func TestSubscribersSeeWhatPagesHaveShown(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	first := commit(t, conn, granted("a")...)
	l.tail.add(segment{}, bound{epoch: 1, upTo: 0, newest: lastOf(100)})
	read := segment{items: []item{{Event: &first[0]}}, upTo: lastOf(epoch.BatchOf(first[0].ID))}
	l.tail.add(read, bound{epoch: 1, upTo: lastOf(100), newest: lastOf(100)})
	all := append(first, commit(t, conn, granted("a")...)...)
	sameEvents(t, "the page", eventsOf(t, l, "a"), all)
	sameEvents(t, "the subscriber", page(t, l, paddock.EventQuery{Names: []string{"a"}, Wait: time.Minute / 2}).Items, all)
}

// waitInBackground waits for a page after the cursor, and returns its events and its error.
func waitInBackground(ctx context.Context, l *Log, q paddock.EventQuery) (<-chan []lock.Event, <-chan error) {
	events, failed := make(chan []lock.Event, 1), make(chan error, 1)
	q.Wait = lock.MaxWait
	go func() {
		p, err := l.Page(ctx, q, nil)
		events <- p.Items
		failed <- err
	}()
	return events, failed
}

// subscribed waits until there are n subscribers.
func subscribed(t *testing.T, l *Log, n int) {
	t.Helper()
	until(t, "there are subscribers", func() bool {
		l.tail.mu.Lock()
		defer l.tail.mu.Unlock()
		return l.tail.subscribers == n && l.tail.last >= 0
	})
}

// TestWaitsEnd for each reason: an event, the end of the time, the caller, a shutdown.
func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := openAndRun(t, url), connect(t, url)
	draining := make(chan struct{})
	l.draining = draining
	if l.Watched() {
		t.Error("watched without a subscriber")
	}
	now := paddock.EventQuery{Cursor: page(t, l, paddock.EventQuery{Cursor: paddock.CursorNow}).Next}

	events, failed := waitInBackground(t.Context(), l, now)
	subscribed(t, l, 1)
	if !l.Watched() {
		t.Error("not watched with a subscriber")
	}
	want := commit(t, conn, granted("a")...)
	l.Poke()
	sameEvents(t, "an event", <-events, want)
	if err := <-failed; err != nil {
		t.Error(err)
	}

	now.Cursor = page(t, l, paddock.EventQuery{Cursor: paddock.CursorNow}).Next
	now.Wait = 30 * time.Millisecond
	began := time.Now()
	if p := page(t, l, now); len(p.Items) > 0 || time.Since(began) < now.Wait {
		t.Errorf("after %v: %+v", time.Since(began), p)
	}

	ctx, cancel := context.WithCancel(t.Context())
	_, failed = waitInBackground(ctx, l, now)
	subscribed(t, l, 1)
	cancel()
	if err := <-failed; !errors.Is(err, lock.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("the caller leaves: %v", err)
	}

	_, failed = waitInBackground(t.Context(), l, now)
	subscribed(t, l, 1)
	close(draining)
	if err := <-failed; !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("shutdown: %v", err)
	}
	now.Wait = time.Second
	if _, err := l.Page(t.Context(), now, nil); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("after shutdown: %v", err)
	}
	if _, err := l.Watch(t.Context(), paddock.Watch{Name: "a"}, nil); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("a watch after shutdown: %v", err)
	}
	if p := page(t, l, paddock.EventQuery{}); len(p.Items) != 1 {
		t.Errorf("a page without a wait, after shutdown: %+v", p)
	}
}
