package eventlog

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// await returns the segment after the id as soon as it is not empty, or the empty one when the wait is over.
func (l *Log) await(ctx context.Context, q paddock.EventQuery, after int64) (segment, error) {
	sub, err := l.subscribe(q.Wait)
	if err != nil {
		return segment{}, err
	}
	defer l.tail.leave()
	for shown := l.shown.Load(); ; shown = 0 {
		s, more, err := l.next(ctx, q, after, shown)
		if err != nil || len(s.items) > 0 || s.gap || sub.over() {
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
func (l *Log) next(ctx context.Context, q paddock.EventQuery, after, shown int64) (segment, <-chan struct{}, error) {
	s, known, more := l.tail.since(after)
	if !known || s.upTo < shown {
		s, err := l.stored(ctx, q, span{after: after, before: math.MaxInt64})
		return s, more, err
	}
	news := s.items
	s.items = nil
	s.add(news, &q)
	return s, more, nil
}

// Watch returns a lock once its version differs from the one seen, or when q.Wait is over, see paddock.Service. read
// returns the lock as it is now; its errors are returned.
func (l *Log) Watch(
	ctx context.Context, q paddock.Watch, read func(ctx context.Context, name string) (lock.Lock, error),
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
		if !known || news.gap ||
			slices.ContainsFunc(news.items, func(i item) bool { return i.unreadable != nil || i.Name == l.Name }) {
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

const (
	// tailLength is the minimum number of items in memory. Subscribers that are further behind read the table.
	tailLength = 4096
	// tailPause is the minimum time between two reads of new events.
	tailPause = 5 * time.Millisecond
	// tailLag is how soon they are read again while there are events after the bound.
	tailLag = 10 * time.Millisecond
	// tailPoll is about how often they are read without a Poke.
	tailPoll = 500 * time.Millisecond
	// tailLinger is how long they are read after the last subscriber has left.
	tailLinger = 5 * time.Second
	// maxSubscribers is the maximum number of subscribers of one replica.
	maxSubscribers = 5000
)

// A tail has the newest events in memory. It is read from the table only while there are subscribers.
type tail struct {
	wake chan struct{} // has a value when there may be new events

	mu          sync.Mutex
	subscribers int
	left        time.Time     // when the last subscriber left
	epoch       int64         // of the items
	first       int64         // all items after this id, up to last, are in items
	last        int64         // negative: nothing was read yet
	items       []item        // in the order of their ids
	more        chan struct{} // closed when last has changed
}

func newTail() *tail {
	return &tail{wake: make(chan struct{}, 1), last: -1, more: make(chan struct{})}
}

// enter adds a subscriber, which must leave again. The error is lock.ErrTooManyWaiters.
func (t *tail) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subscribers >= maxSubscribers {
		return database.TooManyWatchers(t.subscribers)
	}
	t.subscribers++
	if t.last < 0 {
		t.signal()
	}
	return nil
}

func (t *tail) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subscribers--
	t.left = time.Now()
}

// watched reports whether there are subscribers, or were until just now.
func (t *tail) watched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.subscribers > 0 || t.last >= 0 && time.Since(t.left) < tailLinger
}

// signal makes Run read new events.
func (t *tail) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// since returns the items after the id, and a channel that is closed when there may be more. known reports whether
// all of them are in memory.
func (t *tail) since(id int64) (s segment, known bool, more <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last < 0 || id < t.first {
		return segment{}, false, t.more
	}
	i := len(t.items)
	for i > 0 && t.items[i-1].ID > id {
		i--
	}
	s = segment{items: t.items[i:], upTo: max(t.last, id), end: true}
	if len(s.items) > 0 {
		before := t.first
		if i > 0 {
			before = t.items[i-1].ID
		}
		s.gap = lostBetween(epoch.BatchOf(before), epoch.BatchOf(id), epoch.BatchOf(s.items[0].ID))
	}
	return s, true, t.more
}

// position returns the id up to which the tail was read, negative if it was not.
func (t *tail) position() (int64, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.more
}

// add appends the segment after last. It starts over at the bound if nothing was read yet, or if the database has lost
// events that were read, as another epoch or an earlier end shows.
func (t *tail) add(s segment, b bound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last < 0 || t.epoch != b.epoch || t.last > b.newest {
		t.epoch, t.items, t.first, t.last = b.epoch, nil, b.upTo, -1
		s = segment{upTo: b.upTo}
	}
	t.items = append(t.items, s.items...)
	if n := len(t.items) - tailLength; n > tailLength {
		t.first, t.items = t.items[n-1].ID, slices.Clone(t.items[n:])
	}
	if s.upTo != t.last {
		t.last = s.upTo
		close(t.more)
		t.more = make(chan struct{})
	}
}

// forget drops the items unless there are subscribers.
func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.subscribers == 0 {
		t.items, t.first, t.last = nil, 0, -1
	}
}

// Watched reports whether this replica has subscribers, or had some until just now. Other replicas need to notify it
// of their events only then.
func (l *Log) Watched() bool { return l.tail.watched() }

// Poke reports that new events may have been committed. It does not block.
func (l *Log) Poke() {
	if l.Watched() {
		l.tail.signal()
	}
}

// Run reads new events for subscribers until the DB stops.
func (l *Log) Run() {
	for next := tailPoll; ; {
		select {
		case <-l.db.Context().Done():
			return
		case <-l.tail.wake:
		case <-time.After(next):
		}
		next = database.Jittered(tailPoll)
		if l.Watched() {
			lags, err := l.follow()
			l.db.Report("reading new events", err)
			if lags {
				next = tailLag
			}
		} else {
			l.tail.forget()
		}
		if !l.db.Sleep(tailPause) {
			return
		}
	}
}

// follow reads the new events up to the bound. The first time it only reads the bound. lags reports whether there are
// committed events after it.
func (l *Log) follow() (lags bool, err error) {
	for {
		var s segment
		var b bound
		after, _ := l.tail.position()
		err = l.db.Within(func(ctx context.Context) error {
			s, b, err = l.read(ctx, paddock.EventQuery{Limit: paddock.MaxLimit}, after, nextStep)
			return err
		})
		if err != nil {
			return false, err
		}
		l.tail.add(s, b)
		if s.end {
			return b.upTo < b.newest, nil
		}
	}
}
