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
	Requests []EventRequest
}

// A EventRequest is one request: for a page of events, or for a stream, which lasts.
type EventRequest struct {
	Via  string // the replica, or the address, that it was sent to
	Sent time.Duration
	// Opened is when it was known that the service serves the request: for a page, when
	// that was asked for; for a stream, when its answer had begun. Zero if it never was.
	Opened     time.Duration
	Ended      time.Duration // when the answer, or the connection, had ended
	Failed     bool          // whether it ended with an error
	Cursor     int64         // the cursor, as Delivery.Next has it
	Deliveries []Delivery
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
	cursorNow     int64 = -1
	cursorInvalid int64 = -2
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

// Requested notes that a request is sent now, with that cursor.
func (s *Subscriber) Requested(via, cursor string) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	at := s.recorder.instant()
	n := EventRequest{Via: via, Sent: at, Ended: at, Cursor: cursorID(cursor)}
	if s.all.Kind == Polling {
		n.Opened = at
	}
	s.all.Requests = append(s.all.Requests, n)
}

// Opened notes that the stream that was asked for last is open.
func (s *Subscriber) Opened() {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.last().Opened = s.recorder.instant()
}

// Received notes what the request that was asked last was told now.
func (s *Subscriber) Received(page lock.Page[lock.Event]) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	d := Delivery{At: s.recorder.instant(), Next: cursorID(page.Next), Gap: page.Gap}
	if len(page.Items) > 0 {
		d.Events = make([]*lock.Event, len(page.Items))
	}
	for i, e := range page.Items {
		d.Events[i] = s.recorder.sharedEvent(e)
	}
	n := s.last()
	n.Ended, n.Deliveries = d.At, append(n.Deliveries, d)
}

// Ended notes that the request that was asked last has ended, with an error unless err
// is nil.
func (s *Subscriber) Ended(err error) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	n := s.last()
	n.Ended, n.Failed = s.recorder.instant(), err != nil
}

func (s *Subscriber) last() *EventRequest { return &s.all.Requests[len(s.all.Requests)-1] }

// subscription returns what was recorded until now. The recorder's lock must be held.
func (s *Subscriber) subscription() Subscription {
	all := s.all
	all.Requests = slices.Clone(all.Requests)
	return all
}

// sharedEvent returns a copy of the event that all subscribers share which were told the
// same: a run of minutes tells each of them a hundred thousand.
func (r *Recorder) sharedEvent(e lock.Event) *lock.Event {
	first, known := r.events[e.ID]
	if known && sameEvent(*first, e) {
		return first
	}
	own := &e
	if !known {
		r.events[e.ID] = own
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
		return cursorNow
	}
	id, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || id < 0 {
		return cursorInvalid
	}
	return id
}
