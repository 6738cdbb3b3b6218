package eventlog

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// await returns the segment after the id as soon as it is not empty, or the empty one when the wait is over.
func (l *Log) await(ctx context.Context, q lock.EventQuery, after int64) (segment, error) {
	sub, err := l.subscribe(q.Wait)
	if err != nil {
		return segment{}, err
	}
	defer l.tail.leave()
	for shown := l.shown.Load(); ; shown = 0 {
		s, more, err := l.next(ctx, q, after, shown)
		if err != nil || len(s.events) > 0 || s.gap || sub.over() {
			return s, err
		}
		after = s.upTo
		if s.end {
			if _, err := sub.sleep(ctx, more, nil); err != nil {
				return s, err
			}
		}
	}
}

// next returns the segment after the id, from memory if that reaches the id shown, and a channel that is closed when
// there may be more.
func (l *Log) next(ctx context.Context, q lock.EventQuery, after, shown int64) (segment, <-chan struct{}, error) {
	s, known, more := l.tail.since(after)
	if !known || s.upTo < shown {
		s, err := l.stored(ctx, q, after)
		return s, more, err
	}
	s.events = selected(s.events, q)
	s.cut(q.Limit)
	return s, more, nil
}

// selected returns the first q.Limit of the events that q selects. If q selects all events, they share the memory of
// events, which the tail shares with all subscribers, so they must not be changed.
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

// Watch returns a lock once its version differs from the one seen, or when q.Wait is over, see lock.Service. read
// returns the lock as it is now; its errors are returned.
func (l *Log) Watch(
	ctx context.Context, q lock.Watch, read func(ctx context.Context, name string) (lock.Lock, error),
) (lock.Lock, error) {
	q, err := q.Resolve()
	if err != nil {
		return lock.Lock{}, err
	}
	sub, err := l.subscribe(q.Wait)
	if err != nil {
		return lock.Lock{}, err
	}
	defer l.tail.leave()
	for {
		over := sub.over()
		at, more := l.tail.position() // before the lock is read, so that no change is missed
		current, err := read(ctx, q.Name)
		if err != nil || current.Version() != q.Seen || over {
			return current, err
		}
		if err := sub.untilChanged(ctx, current, at, more); err != nil {
			return current, err
		}
	}
}

// untilChanged waits until the lock may differ from the one that was read, or the time is over. at is an id that the
// tail had reached before.
func (s *subscriber) untilChanged(ctx context.Context, l lock.Lock, at int64, more <-chan struct{}) error {
	var changes <-chan time.Time
	if next := l.NextChangeAt(); !next.IsZero() {
		changes = time.After(next.Sub(l.AsOf))
	}
	for {
		changed, err := s.sleep(ctx, more, changes)
		if err != nil || changed || s.over() {
			return err
		}
		var news segment
		var known bool
		news, known, more = s.log.tail.since(at)
		if !known || news.gap || slices.ContainsFunc(news.events, func(e lock.Event) bool { return e.Name == l.Name }) {
			return nil
		}
		at = news.upTo
	}
}

// A subscriber is a call that waits.
type subscriber struct {
	log   *Log
	until time.Time
	timer <-chan time.Time // fires then
}

// subscribe returns a subscriber that waits for at most that long. It must leave the tail.
func (l *Log) subscribe(wait time.Duration) (*subscriber, error) {
	select {
	case <-l.draining:
		return nil, database.Stopping()
	default:
	}
	if err := l.tail.enter(); err != nil {
		return nil, err
	}
	return &subscriber{log: l, until: time.Now().Add(wait), timer: time.After(wait)}, nil
}

// over reports whether the wait is over.
func (s *subscriber) over() bool { return !time.Now().Before(s.until) }

// sleep waits until more is closed, the timer changes fires, which it reports, or the time is over.
func (s *subscriber) sleep(
	ctx context.Context, more <-chan struct{}, changes <-chan time.Time,
) (changed bool, err error) {
	select {
	case <-more:
	case <-changes:
		changed = true
	case <-s.timer:
	case <-s.log.draining:
		err = database.Stopping()
	case <-s.log.db.Context().Done():
		err = database.Stopping()
	case <-ctx.Done():
		err = database.Departed(context.Cause(ctx))
	}
	return changed, err
}
