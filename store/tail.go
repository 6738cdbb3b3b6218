package store

import (
	"context"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

const (
	// tailLength is how many events are kept in memory, at least, for those who
	// watch. Who is further behind reads the table.
	tailLength = 4096
	// tailPause is the least time between two readings of new events.
	tailPause = 5 * time.Millisecond
	// tailLag is how soon they are read again while there are some that may not be
	// shown yet.
	tailLag = 10 * time.Millisecond
	// tailPoll is how often they are read without anybody having said that there
	// are any, about.
	tailPoll = 500 * time.Millisecond
	// tailLinger is for how long they are read after the last who watched has left.
	tailLinger = 5 * time.Second
	// maxWatchers is how many may watch one replica at once.
	maxWatchers = 5000
)

// A tail is the end of the events, for those who watch: one reads the table, and
// all are told. It is read only while somebody watches.
type tail struct {
	poked chan struct{} // has a value when there may be something new

	mu       sync.Mutex
	watchers int
	left     time.Time     // when the last watcher did
	epoch    int64         // in which events were read
	first    int64         // all events after this id, up to last, are in events
	last     int64         // negative: nothing was read yet
	events   []lock.Event  // in order
	more     chan struct{} // closed when last has grown
}

func newTail() *tail {
	return &tail{poked: make(chan struct{}, 1), last: -1, more: make(chan struct{})}
}

// enter lets somebody watch, who must leave again, unless too many do.
func (t *tail) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watchers >= maxWatchers {
		return tooMany(t.watchers)
	}
	t.watchers++
	if t.last < 0 {
		t.poke()
	}
	return nil
}

func (t *tail) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.watchers--
	t.left = time.Now()
}

// watched is whether somebody watches, or did until just now.
func (t *tail) watched() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.watchers > 0 || t.last >= 0 && time.Since(t.left) < tailLinger
}

func (t *tail) poke() {
	select {
	case t.poked <- struct{}{}:
	default:
	}
}

// pokeIfAny has the events be read if anybody watches.
func (t *tail) pokeIfAny() {
	if t.watched() {
		t.poke()
	}
}

// A news is what the tail knows of the events after an id.
type news struct {
	events []lock.Event
	upTo   int64           // these are all the events up to this id
	known  bool            // whether they are all in memory
	gap    bool            // whether the history has lost the event of the id
	more   <-chan struct{} // closed when there are further events
}

// since returns the events after the id.
func (t *tail) since(id int64) news {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last < 0 || id < t.first {
		return news{upTo: id, more: t.more}
	}
	i := len(t.events)
	for i > 0 && t.events[i-1].ID > id {
		i--
	}
	n := news{events: t.events[i:len(t.events):len(t.events)], upTo: max(t.last, id), known: true, more: t.more}
	if len(n.events) > 0 {
		before := t.first
		if i > 0 {
			before = t.events[i-1].ID
		}
		n.gap = lostBetween(before, id, n.events[0].ID)
	}
	return n
}

// position returns up to which id the tail has been read, negative for nowhere.
func (t *tail) position() (int64, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last, t.more
}

// begin returns the id after which events are to be read, negative if the end is to be found first: at the beginning, and
// when the history has lost events that were read, as a new epoch or an earlier end shows.
func (t *tail) begin(end eventsEnd) (after int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != end.epoch || t.last > end.newest {
		t.epoch, t.events, t.first, t.last = end.epoch, nil, 0, -1
	}
	return t.last
}

// add appends what came after last, which is everything up to the id.
func (t *tail) add(events []lock.Event, upTo int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last < 0 {
		t.first = upTo
	}
	t.events = append(t.events, events...)
	if n := len(t.events) - tailLength; n > tailLength {
		t.first = t.events[n-1].ID
		t.events = append([]lock.Event(nil), t.events[n:]...)
	}
	if upTo != t.last {
		t.last = upTo
		close(t.more)
		t.more = make(chan struct{})
	}
}

// forget drops all that was read, as nobody watches.
func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watchers == 0 {
		t.events, t.first, t.last = nil, 0, -1
	}
}

// follow reads the tail until the store closes.
func (s *Store) follow() {
	var blind trouble
	timer := time.NewTimer(tailPoll)
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.tail.poked:
		case <-timer.C:
		}
		next := jittered(tailPoll)
		if s.tail.watched() {
			lags, err := s.readTail()
			s.troubled(&blind, "reading new events", err)
			if lags {
				next = tailLag
			}
		} else {
			s.tail.forget()
		}
		if !s.sleep(tailPause) {
			return
		}
		timer.Reset(next)
	}
}

// readTail reads what is new, and returns whether there are events that may not
// be shown yet. The first time it only finds out where the end is.
func (s *Store) readTail() (lags bool, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, tripTimeout)
	defer cancel()
	end, err := s.eventsEnd(ctx)
	if err != nil {
		return false, err
	}
	after := s.tail.begin(end)
	for after >= 0 && after < end.settled {
		events, err := s.eventsBetween(ctx, after, end.settled, lock.EventQuery{Limit: lock.MaxLimit})
		if err != nil {
			return false, err
		}
		upTo := end.settled
		if len(events) == lock.MaxLimit {
			upTo = events[len(events)-1].ID
		}
		s.tail.add(events, upTo)
		after = upTo
	}
	if after < 0 {
		s.tail.add(nil, end.settled)
	}
	return end.settled < end.newest, nil
}
