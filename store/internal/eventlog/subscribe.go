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

// await returns the segment after the id as soon as it is not empty, or the empty one when the wait is over or enough
// is closed.
func (l *Log) await(ctx context.Context, q paddock.EventQuery, after int64, enough <-chan struct{}) (segment, error) {
	sub, err := l.subscribe(q)
	if err != nil {
		return segment{}, err
	}
	defer l.tail.leave()
	sub.enough = enough
	for shown := l.shown.Load(); ; shown = 0 {
		s, change, err := l.next(ctx, q, after, shown)
		if err == nil && readsHistory(q) {
			err = l.here(q.Names[0])
		}
		if err != nil || len(s.items) > 0 || s.gap || sub.over() {
			return s, err
		}
		after = s.upTo
		if s.end && l.tail.listen(sub, after, change) {
			err := sub.sleep(ctx, nil)
			if after = l.tail.stop(sub); err != nil {
				return s, err
			}
		}
	}
}

// next returns the segment after the id, from memory if that reaches the id shown, and the number of the tail's last
// change before that.
func (l *Log) next(ctx context.Context, q paddock.EventQuery, after, shown int64) (segment, int, error) {
	s, known, change := l.tail.since(after)
	if !known || s.upTo < shown {
		s, err := l.stored(ctx, q, span{after: after, before: math.MaxInt64})
		return s, change, err
	}
	news := s.items
	s.items = nil
	s.add(news, &q)
	return s, change, nil
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
	sub, err := l.subscribe(paddock.EventQuery{Names: []string{q.Name}, Wait: q.Wait})
	if err != nil {
		return lock.Lock{}, err
	}
	defer l.tail.leave()
	for {
		over := sub.over()
		at, change := l.tail.position() // before the lock is read, so that no change is missed
		current, err := read(ctx, q.Name)
		if err != nil || current.Version() != q.Seen || over {
			return current, err
		}
		if err := sub.untilChanged(ctx, current, at, change); err != nil {
			return current, err
		}
	}
}

// untilChanged waits until the lock may differ from the one that was read, or the time is over. at is an id that the
// tail had reached before, with this change.
func (s *subscriber) untilChanged(ctx context.Context, l lock.Lock, at int64, change int) error {
	var changes <-chan time.Time
	if next := l.NextChangeAt(); !next.IsZero() {
		changes = time.After(next.Sub(l.AsOf))
	}
	for !s.log.tail.listen(s, at, change) {
		var news segment
		var known bool
		news, known, change = s.log.tail.since(at)
		if !known || news.gap ||
			slices.ContainsFunc(news.items, func(i item) bool { return i.unreadable != nil || i.Name == l.Name }) {
			return nil
		}
		at = news.upTo
	}
	defer s.log.tail.stop(s)
	return s.sleep(ctx, changes)
}

// A subscriber is a call that waits for events that a query selects.
type subscriber struct {
	log    *Log
	until  time.Time
	timer  <-chan time.Time // fires then
	enough <-chan struct{}  // closed when the call waits no longer; may be nil

	query paddock.EventQuery
	wake  chan struct{} // has a value when there may be such an event
	upTo  int64         // owned by the tail: there are no such events up to this id that the call has not seen
}

// subscribe returns a subscriber that waits for the query's Wait at most. It must leave the tail.
func (l *Log) subscribe(q paddock.EventQuery) (*subscriber, error) {
	select {
	case <-l.draining:
		return nil, database.Stopping()
	default:
	}
	if err := l.tail.enter(); err != nil {
		return nil, err
	}
	return &subscriber{
		log: l, until: time.Now().Add(q.Wait), timer: time.After(q.Wait), query: q, wake: make(chan struct{}, 1),
	}, nil
}

// over reports whether the call waits no longer.
func (s *subscriber) over() bool {
	select {
	case <-s.enough:
		return true
	default:
		return !time.Now().Before(s.until)
	}
}

// sleep waits until the tail wakes the subscriber, the timer changes fires, or the time is over.
func (s *subscriber) sleep(ctx context.Context, changes <-chan time.Time) error {
	select {
	case <-s.wake:
	case <-changes:
	case <-s.enough:
	case <-s.timer:
	case <-s.log.draining:
		return database.Stopping()
	case <-s.log.db.Context().Done():
		return database.Stopping()
	case <-ctx.Done():
		return database.Departed(context.Cause(ctx))
	}
	return nil
}

const (
	// tailLength is the minimum number of items in memory. Subscribers that are further behind read the table.
	tailLength = 4096
	// tailPause is the minimum time between two reads of new events. Each costs the database and the replica the work of a
	// few pairs, whatever it finds, and a person or a guard that is told does not notice the difference.
	tailPause = 20 * time.Millisecond
	// tailPoll is about how often they are read without a Poke.
	tailPoll = 500 * time.Millisecond
	// tailLinger is how long they are read after the last subscriber has left.
	tailLinger = 5 * time.Second
	// maxSubscribers is the maximum number of subscribers of one replica.
	maxSubscribers = 5000
)

// A tail has the newest events in memory. It is read from the table only while there are subscribers. A subscriber that
// sleeps is woken by events of its names, and is not asked about others.
type tail struct {
	wake chan struct{} // has a value when there may be new events

	mu          sync.Mutex
	subscribers int
	left        time.Time // when the last subscriber left
	epoch       int64     // of the items
	first       int64     // all items after this id, up to last, are in items
	last        int64     // negative: nothing was read yet
	items       []item    // in the order of their ids
	changes     int       // how often last has changed
	listening   index     // the subscribers that sleep
	ahead       set       // those of them that have an id beyond last
}

func newTail() *tail {
	return &tail{wake: make(chan struct{}, 1), last: -1, listening: newIndex(), ahead: set{}}
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

// since returns the items after the id, and the number of the last change. known reports whether all of them are in
// memory.
func (t *tail) since(id int64) (s segment, known bool, change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last < 0 || id < t.first {
		return segment{}, false, t.changes
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
	return s, true, t.changes
}

// position returns the id up to which the tail was read, negative if it was not, and the number of the last change.
func (t *tail) position() (last int64, change int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.changes
}

// listen makes the tail wake the subscriber when there may be events for it after the id. It reports false if the tail
// has changed since: then the subscriber must look again. It must stop when it is awake.
func (t *tail) listen(s *subscriber, id int64, change int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changes != change {
		return false
	}
	s.upTo = id
	t.listening.add(s)
	if id > t.last {
		t.ahead[s] = struct{}{}
	}
	return true
}

// stop ends the sleep of a subscriber, and returns the id up to which there are no events for it.
func (t *tail) stop(s *subscriber) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, asleep := t.listening.all[s]; asleep {
		t.rouse(s, t.last)
	}
	select {
	case <-s.wake:
	default: // that woke it
	}
	return s.upTo
}

// rouse wakes a subscriber, for which there are no events up to the id.
func (t *tail) rouse(s *subscriber, id int64) {
	t.listening.remove(s)
	delete(t.ahead, s)
	s.upTo = max(s.upTo, id)
	s.wake <- struct{}{} // it is empty: the subscriber was asleep
}

// rouseAll wakes all subscribers, for which there are no events up to the id.
func (t *tail) rouseAll(subscribers set, id int64) {
	for s := range subscribers {
		t.rouse(s, id)
	}
}

// tell wakes the subscribers for which there may be events among the items. The items follow last. A subscriber
// that was ahead of them must see even the items of other names, which may show that its event was lost. An item that
// cannot be read wakes all subscribers that listen, since the names of its events are unknown.
func (t *tail) tell(items []item) {
	t.rouseAll(t.ahead, -1)
	for _, i := range items {
		if i.unreadable != nil {
			t.rouseAll(t.listening.all, t.last)
		}
		t.listening.each(i.Name, func(s *subscriber) {
			if i.selectedBy(&s.query) {
				t.rouse(s, t.last)
			}
		})
	}
}

// add appends the segment after last. It starts over at the bound if nothing was read yet, or if the database has lost
// events that were read, as another epoch or an earlier end shows.
func (t *tail) add(s segment, b bound) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last < 0 || t.epoch != b.epoch || t.last > b.newest {
		t.epoch, t.items, t.first, t.last = b.epoch, nil, b.upTo, -1
		s = segment{upTo: b.upTo}
		t.rouseAll(t.listening.all, -1)
	}
	t.tell(s.items)
	t.items = append(t.items, s.items...)
	if n := len(t.items) - tailLength; n > tailLength {
		t.first, t.items = t.items[n-1].ID, slices.Clone(t.items[n:])
	}
	if s.upTo != t.last {
		t.last = s.upTo
		t.changes++
	}
}

// restart drops the items, so that each subscriber looks again, in the table.
func (t *tail) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items, t.first, t.changes = nil, t.last+1, t.changes+1
	t.rouseAll(t.listening.all, -1)
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

// Rouse makes all subscribers look again, because locks may be decided about elsewhere now.
func (l *Log) Rouse() { l.tail.restart() }

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
				next = 0
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
