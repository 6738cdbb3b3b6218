package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// A Recorder hears what clients ask and are answered. It is safe for concurrent use.
type Recorder struct {
	start time.Time

	mu      sync.Mutex
	last    time.Duration // the newest instant that was noted
	clients int
	calls   []Call
	faults  []Fault
	// subscribers were started by Subscribe; heard holds the first copy of each event that
	// any of them received.
	subscribers []*Subscriber
	events      map[int64]*lock.Event
}

// NewRecorder returns a Recorder whose time begins now.
func NewRecorder() *Recorder { return &Recorder{start: time.Now(), events: map[int64]*lock.Event{}} }

// Client returns the service as one client uses it, whose calls are recorded. They
// must not overlap, but for those whose answers are not waited for any more. Via names where the service
// sends them.
func (r *Recorder) Client(via string, s lock.Service) lock.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients++
	return &client{Service: s, recorder: r, number: r.clients, via: via}
}

// MarkFault notes a fault that is injected now. The function that it returns notes that the
// fault is undone. A fault of which that is not noted is taken to be over at once.
func (r *Recorder) MarkFault(what string) (over func()) { return r.mark(what, false) }

// MarkEpoch notes a fault after which another clock, or another database, may answer:
// a fail-over, a restore, a clock that is set. It returns what Mark does.
func (r *Recorder) MarkEpoch(what string) (over func()) { return r.mark(what, true) }

func (r *Recorder) mark(what string, epoch bool) (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, i := r.instant(), len(r.faults)
	r.faults = append(r.faults, Fault{Description: what, At: at, Ended: at, Epoch: epoch})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.faults[i].Ended = r.instant()
	}
}

// instant returns how long ago the recording began. No two instants are the same,
// though the clock may stand still: what came after another thing is known to have.
func (r *Recorder) instant() time.Duration {
	r.last = max(time.Since(r.start), r.last+1)
	return r.last
}

// now is instant for who does not have the lock.
func (r *Recorder) now() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instant()
}

// History returns what was recorded. Calls that still run are not in it: wait for
// the clients first.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := History{Calls: slices.Clone(r.calls), Faults: slices.Clone(r.faults), Start: r.start}
	for _, s := range r.subscribers {
		h.Subscriptions = append(h.Subscriptions, s.subscription())
	}
	slices.SortStableFunc(h.Calls, func(a, b Call) int { return cmp.Compare(a.Sent, b.Sent) })
	for i := range h.Calls {
		h.Calls[i].ID = i
	}
	return h
}

// A client is a lock.Service that records what is asked and answered.
type client struct {
	lock.Service
	recorder *Recorder
	number   int
	via      string
}

// record makes the call and notes its answer.
func record[T any](ctx context.Context, c *client, verb Verb, name string, asked any, do func() (T, error)) (T, error) {
	call := Call{Client: c.number, Via: c.via, Verb: verb, Name: name, Request: asked, Sent: c.recorder.now()}
	got, err := do()
	call.Err = err
	call.Cancelled = err != nil && errors.Is(ctx.Err(), context.Canceled)
	if err == nil {
		call.Response = got
	}
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	call.Answered = c.recorder.instant()
	c.recorder.calls = append(c.recorder.calls, call)
	return got, err
}

func (c *client) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID = lock.LeaseID(uuid.New()) // or an answer that is lost could not be told from others
	}
	return record(ctx, c, Acquire, a.Name, a, func() (lock.Grant, error) { return c.Service.Acquire(ctx, a) })
}

func (c *client) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return record(ctx, c, Renew, r.Name, r, func() (lock.Grant, error) { return c.Service.Renew(ctx, r) })
}

func (c *client) Release(ctx context.Context, r lock.Release) error {
	_, err := record(ctx, c, Release, r.Name, r, func() (struct{}, error) { return struct{}{}, c.Service.Release(ctx, r) })
	return err
}

// Batch makes a call of each item, so that it is recorded.
func (c *client) Batch(ctx context.Context, items []lock.Command) []lock.Result {
	return lock.BatchSequentially(ctx, c, items)
}

func (c *client) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	return record(ctx, c, Revoke, r.Name, r, func() (lock.Lock, error) { return c.Service.Revoke(ctx, r) })
}

func (c *client) Lock(ctx context.Context, name string) (lock.Lock, error) {
	return record(ctx, c, ReadLock, name, name, func() (lock.Lock, error) { return c.Service.Lock(ctx, name) })
}

func (c *client) Watch(ctx context.Context, w lock.Watch) (lock.Lock, error) {
	return record(ctx, c, Watch, w.Name, w, func() (lock.Lock, error) { return c.Service.Watch(ctx, w) })
}

func (c *client) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	return record(ctx, c, VerifyToken, v.Name, v, func() (lock.Verification, error) { return c.Service.VerifyToken(ctx, v) })
}

func (c *client) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	return record(ctx, c, WriteFenced, w.Lock, w, func() (lock.FencedValue, error) { return c.Service.WriteFenced(ctx, w) })
}

func (c *client) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	return record(ctx, c, ReadFenced, key, key, func() (lock.FencedValue, error) { return c.Service.ReadFenced(ctx, key) })
}

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
