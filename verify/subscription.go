package verify

import (
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A SubscriptionKind says how a subscriber reads events.
type SubscriptionKind string

// The kinds of subscriptions. Blocking reads of a lock are calls, with the verb Watch.
const (
	Streaming SubscriptionKind = "stream" // a stream of server-sent events that reconnects
	Polling   SubscriptionKind = "poller" // pages of events, one request after the other
)

// A Subscription is all that one reader of events asked and was told in its life. It
// has one cursor, which outlives errors, connections and replicas.
type Subscription struct {
	Kind     SubscriptionKind
	Number   int    // from 1, of all subscriptions of the recorder
	Prefix   string // of the names of the locks whose events it asks for
	Readings []Reading
}

// A Reading is one request: for a page of events, or for a stream, which lasts.
type Reading struct {
	Via  string // the replica, or the address, that it was sent to
	Sent time.Duration
	// Opened is when it was known that the service serves the request: for a page, when
	// that was asked for; for a stream, when its answer had begun. Zero if it never was.
	Opened time.Duration
	Over   time.Duration // when the answer, or the connection, had ended
	Failed bool          // whether it ended with an error
	Asked  int64         // the cursor, as Delivery.Next has it
	Told   []Delivery
}

// A Delivery is what a subscriber was told at once: a page, or one message of a stream.
type Delivery struct {
	At time.Duration
	// Next is the cursor after the delivery, which is the id of an event: all events up
	// to it were told, now or before. It is fromNow for the end of the events, and
	// unreadable for a cursor that is no id.
	Next int64
	// Gap reports whether the service said that events are missing before these.
	Gap bool
	// Events are shared with other deliveries of the same events: they must not be changed.
	Events []*lock.Event
}

// The cursors that are no ids.
const (
	fromNow    int64 = -1
	unreadable int64 = -2
)

// A Subscriber records a Subscription. Its methods are for one goroutine.
type Subscriber struct {
	recorder *Recorder
	all      Subscription
}

// Subscribe begins the recording of a subscriber that reads the events of the locks
// whose names begin with the prefix.
func (r *Recorder) Subscribe(kind SubscriptionKind, prefix string) *Subscriber {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Subscriber{recorder: r, all: Subscription{Kind: kind, Number: len(r.subscribers) + 1, Prefix: prefix}}
	r.subscribers = append(r.subscribers, s)
	return s
}

// Ask notes that a request is sent now, with that cursor.
func (s *Subscriber) Ask(via, cursor string) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	at := s.recorder.instant()
	n := Reading{Via: via, Sent: at, Over: at, Asked: cursorID(cursor)}
	if s.all.Kind == Polling {
		n.Opened = at
	}
	s.all.Readings = append(s.all.Readings, n)
}

// Open notes that the stream that was asked for last is open.
func (s *Subscriber) Open() {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.last().Opened = s.recorder.instant()
}

// Told notes what the request that was asked last was told now.
func (s *Subscriber) Told(page lock.Page[lock.Event]) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	d := Delivery{At: s.recorder.instant(), Next: cursorID(page.Next), Gap: page.Gap}
	if len(page.Items) > 0 {
		d.Events = make([]*lock.Event, len(page.Items))
	}
	for i, e := range page.Items {
		d.Events[i] = s.recorder.shared(e)
	}
	n := s.last()
	n.Over, n.Told = d.At, append(n.Told, d)
}

// Ended notes that the request that was asked last has ended, with an error unless err
// is nil.
func (s *Subscriber) Ended(err error) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	n := s.last()
	n.Over, n.Failed = s.recorder.instant(), err != nil
}

func (s *Subscriber) last() *Reading { return &s.all.Readings[len(s.all.Readings)-1] }

// subscription returns what was recorded until now. The recorder's lock must be held.
func (s *Subscriber) subscription() Subscription {
	all := s.all
	all.Readings = slices.Clone(all.Readings)
	return all
}

// shared returns a copy of the event that all subscribers share which were told the
// same: a run of minutes tells each of them a hundred thousand.
func (r *Recorder) shared(e lock.Event) *lock.Event {
	first, known := r.heard[e.ID]
	if known && sameEvent(*first, e) {
		return first
	}
	own := &e
	if !known {
		r.heard[e.ID] = own
	}
	return own
}

// sameEvent reports whether the two are equal field by field. Refs do not travel.
func sameEvent(a, b lock.Event) bool {
	if !a.At.Equal(b.At) {
		return false
	}
	a.At, a.Ref, b.At, b.Ref = time.Time{}, 0, time.Time{}, 0
	return a == b
}

// cursorID returns the id that a cursor is.
func cursorID(cursor string) int64 {
	switch cursor {
	case "", "0":
		return 0
	case lock.CursorNow:
		return fromNow
	}
	id, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || id < 0 {
		return unreadable
	}
	return id
}
