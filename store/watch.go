package store

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// awaitEvents returns a page of events after the id as soon as there is one that
// is not empty, or the empty one when the wait is over.
func (s *Store) awaitEvents(ctx context.Context, q lock.EventQuery, after int64) (lock.Page[lock.Event], error) {
	w, err := s.watch(q.Wait)
	if err != nil {
		return lock.Page[lock.Event]{}, err
	}
	defer w.stop()
	for told := s.told.Load(); ; told = 0 {
		page, more, err := s.nextEvents(ctx, q, after, told)
		if err != nil || len(page.Items) > 0 || page.Gap || w.over {
			return page, err
		}
		if after, err = eventCursor(page.Next); err != nil {
			return page, err
		}
		if _, err := w.wait(ctx, more, nil); err != nil {
			return page, err
		}
	}
}

// nextEvents returns what there is after the id, from memory if that knows what was told, and
// what is closed when there may be more.
func (s *Store) nextEvents(ctx context.Context, q lock.EventQuery, after, told int64) (page lock.Page[lock.Event], more <-chan struct{}, err error) {
	n := s.tail.since(after)
	if !n.known || after < 0 || n.upTo < told {
		page, err = s.eventPage(ctx, q, after)
		return page, n.more, err
	}
	page.Gap, page.Items = n.gap, selected(n.events, q)
	page.Next = strconv.FormatInt(pageEnd(page.Items, q.Limit, n.upTo), 10)
	return page, n.more, nil
}

// selected returns the first q.Limit of the events that q selects. Where q selects all they share the memory of events,
// which the tail shares with all who watch, so that a subscriber to everything costs no copy. Nobody may change them.
func selected(events []lock.Event, q lock.EventQuery) (items []lock.Event) {
	if q.Name == "" && q.Prefix == "" {
		n := min(len(events), q.Limit)
		return events[:n:n]
	}
	for _, e := range events {
		if len(items) == q.Limit {
			break
		}
		if (q.Name == "" || e.Name == q.Name) && strings.HasPrefix(e.Name, q.Prefix) {
			items = append(items, e)
		}
	}
	return items
}

// Watch returns a lock once it is not what was seen, see lock.Service.
func (s *Store) Watch(ctx context.Context, q lock.Watch) (lock.Lock, error) {
	q, err := q.Resolve()
	if err != nil {
		return lock.Lock{}, err
	}
	w, err := s.watch(q.Wait)
	if err != nil {
		return lock.Lock{}, err
	}
	defer w.stop()
	for {
		at, more := s.tail.position() // before the lock is read: what changes after is told
		l, _, err := s.readLock(ctx, q.Name)
		if err != nil || l.Version() != q.Seen || w.over {
			return l, err
		}
		if err := w.untilChanged(ctx, l, at, more); err != nil {
			return l, err
		}
	}
}

// untilChanged sleeps until the lock may not be what was read, or the time is over.
func (w *watcher) untilChanged(ctx context.Context, l lock.Lock, at int64, more <-chan struct{}) error {
	var turn <-chan time.Time
	if turns := l.NextChangeAt(); !turns.IsZero() {
		turn = time.After(turns.Sub(l.AsOf))
	}
	for {
		turned, err := w.wait(ctx, more, turn)
		if err != nil || turned || w.over {
			return err
		}
		n := w.tail.since(at)
		if !n.known || n.gap || slices.ContainsFunc(n.events, func(e lock.Event) bool { return e.Name == l.Name }) {
			return nil
		}
		at, more = n.upTo, n.more
	}
}

// A watcher is a call that waits for something to happen.
type watcher struct {
	*Store
	timer *time.Timer
	over  bool // whether its time is
}

func (s *Store) watch(wait time.Duration) (*watcher, error) {
	if s.seats.draining() {
		return nil, stopping()
	}
	if err := s.tail.enter(); err != nil {
		return nil, err
	}
	return &watcher{Store: s, timer: time.NewTimer(wait)}, nil
}

func (w *watcher) stop() {
	w.timer.Stop()
	w.tail.leave()
}

// wait sleeps until more is closed, the turn comes, which it returns, or the time
// is over.
func (w *watcher) wait(ctx context.Context, more <-chan struct{}, turn <-chan time.Time) (turned bool, err error) {
	select {
	case <-more:
	case <-turn:
		turned = true
	case <-w.timer.C:
		w.over = true
	case <-w.seats.drained:
		err = stopping()
	case <-w.ctx.Done():
		err = stopping()
	case <-ctx.Done():
		err = departed(context.Cause(ctx))
	}
	return turned, err
}
