package verify

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// A Recorder records calls, faults and subscriptions. It is safe for concurrent use.
type Recorder struct {
	start time.Time

	mu      sync.Mutex
	last    time.Duration // newest time that was recorded
	clients int
	calls   []Call
	faults  []Fault
	// subscribers were started by Subscribe; events holds the first copy of each event that
	// any of them received.
	subscribers []*Subscriber
	events      map[int64]*lock.Event
}

// NewRecorder returns a Recorder whose clock starts now.
func NewRecorder() *Recorder { return &Recorder{start: time.Now(), events: map[int64]*lock.Event{}} }

// Client returns the service as used by one new client whose calls are recorded. The calls must not
// overlap, except with calls that the client has given up. via names the replica or address.
func (r *Recorder) Client(via string, s paddock.Service) paddock.Service {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients++
	return &client{Service: s, recorder: r, number: r.clients, via: via}
}

// MarkFault records a fault that is injected now. Call the returned function when the fault is
// undone; without that call the fault counts as over at once.
func (r *Recorder) MarkFault(what string) (over func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, i := r.instant(), len(r.faults)
	r.faults = append(r.faults, Fault{Description: what, At: at, Ended: at})
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.faults[i].Ended = r.instant()
	}
}

// instant returns the time since the recording began. No two calls return the same value, even if
// the clock stands still, so order is always known. The caller holds mu.
func (r *Recorder) instant() time.Duration {
	r.last = max(time.Since(r.start), r.last+1)
	return r.last
}

// now is instant for callers that do not hold mu.
func (r *Recorder) now() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.instant()
}

// History returns what was recorded. Unfinished calls are not in it: wait for the clients first.
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

// Calls returns how many calls have been recorded.
func (r *Recorder) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// A client is a paddock.Service that records calls and answers.
type client struct {
	paddock.Service
	recorder *Recorder
	number   int
	via      string
}

// record makes the call and records its answer.
func record[T any](ctx context.Context, c *client, verb Verb, name string, asked any, do func() (T, error)) (T,
	error) {
	call := Call{Client: c.number, Via: c.via, Verb: verb, Name: name, Request: asked, Sent: c.recorder.now()}
	got, err := do()
	call.Err = err
	call.Cancelled = err != nil && errors.Is(ctx.Err(), context.Canceled)
	call.ContextEnded = err != nil && ctx.Err() != nil
	if err == nil {
		call.Response = got
	}
	c.recorder.mu.Lock()
	defer c.recorder.mu.Unlock()
	call.Answered = c.recorder.instant()
	c.recorder.calls = append(c.recorder.calls, call)
	return got, err
}

// locksOf returns the names of the locks of a command.
func locksOf(c lock.Command) string { return strings.Join(c.Names(), ", ") }

func (c *client) Acquire(ctx context.Context, a lock.Acquire) (lock.Grant, error) {
	if a.LeaseID == (lock.LeaseID{}) {
		a.LeaseID = lock.LeaseID(uuid.New()) // a lost answer could not be matched otherwise
	}
	return record(ctx, c, Acquire, locksOf(a), a, func() (lock.Grant, error) { return c.Service.Acquire(ctx, a) })
}

func (c *client) Renew(ctx context.Context, r lock.Renew) (lock.Grant, error) {
	return record(ctx, c, Renew, locksOf(r), r, func() (lock.Grant, error) { return c.Service.Renew(ctx, r) })
}

func (c *client) Release(ctx context.Context, r lock.Release) error {
	_, err := record(ctx, c, Release, locksOf(r), r,
		func() (struct{}, error) { return struct{}{}, c.Service.Release(ctx, r) })
	return err
}

// Batch makes one recorded call for each item.
func (c *client) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	return paddock.BatchSequentially(ctx, c, items)
}

func (c *client) Revoke(ctx context.Context, r lock.Revoke) (lock.Lock, error) {
	return record(ctx, c, Revoke, r.Name, r, func() (lock.Lock, error) { return c.Service.Revoke(ctx, r) })
}

func (c *client) Lock(ctx context.Context, name string) (lock.Lock, error) {
	return record(ctx, c, ReadLock, name, name, func() (lock.Lock, error) { return c.Service.Lock(ctx, name) })
}

func (c *client) Watch(ctx context.Context, w paddock.Watch) (lock.Lock, error) {
	return record(ctx, c, Watch, w.Name, w, func() (lock.Lock, error) { return c.Service.Watch(ctx, w) })
}

func (c *client) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	return record(ctx, c, VerifyToken, v.Name, v,
		func() (lock.Verification, error) { return c.Service.VerifyToken(ctx, v) })
}

func (c *client) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	return record(ctx, c, WriteFenced, w.Lock, w,
		func() (lock.FencedValue, error) { return c.Service.WriteFenced(ctx, w) })
}

func (c *client) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	return record(ctx, c, ReadFenced, key, key,
		func() (lock.FencedValue, error) { return c.Service.ReadFenced(ctx, key) })
}

func (c *client) DeclareTree(ctx context.Context, root string) (lock.Tree, error) {
	return record(ctx, c, DeclareTree, root, root, func() (lock.Tree, error) { return c.Service.DeclareTree(ctx, root) })
}

func (c *client) Freeze(ctx context.Context, r lock.FreezeRequest) (lock.FreezeStatus, error) {
	return record(ctx, c, Freeze, string(r.Scope), r, func() (lock.FreezeStatus, error) { return c.Service.Freeze(ctx, r) })
}

func (c *client) Thaw(ctx context.Context, r lock.ThawRequest) error {
	_, err := record(ctx, c, Thaw, string(r.Scope), r,
		func() (struct{}, error) { return struct{}{}, c.Service.Thaw(ctx, r) })
	return err
}

func (c *client) SetRule(ctx context.Context, r lock.Rule) (lock.Rule, error) {
	return record(ctx, c, SetRule, string(r.Scope), r, func() (lock.Rule, error) { return c.Service.SetRule(ctx, r) })
}

func (c *client) RemoveRule(ctx context.Context, s lock.Scope) error {
	_, err := record(ctx, c, RemoveRule, string(s), s,
		func() (struct{}, error) { return struct{}{}, c.Service.RemoveRule(ctx, s) })
	return err
}

func (c *client) OpenSession(ctx context.Context, o lock.OpenSession) (lock.SessionGrant, error) {
	if o.ID == (lock.SessionID{}) {
		o.ID = lock.SessionID(uuid.New()) // a lost answer could not be matched otherwise
	}
	return record(ctx, c, OpenSession, o.ID.Ref().String(), o,
		func() (lock.SessionGrant, error) { return c.Service.OpenSession(ctx, o) })
}

func (c *client) RenewSession(ctx context.Context, r lock.RenewSession) (lock.SessionGrant, error) {
	return record(ctx, c, RenewSession, r.ID.Ref().String(), r,
		func() (lock.SessionGrant, error) { return c.Service.RenewSession(ctx, r) })
}

func (c *client) CloseSession(ctx context.Context, s lock.CloseSession) error {
	_, err := record(ctx, c, CloseSession, s.ID.Ref().String(), s,
		func() (struct{}, error) { return struct{}{}, c.Service.CloseSession(ctx, s) })
	return err
}

// A SubscriptionKind says how a subscriber reads events.
type SubscriptionKind string

// Kinds of subscriptions. Blocking reads of a lock are calls, with the verb Watch.
const (
	Streaming SubscriptionKind = "stream" // a stream of server-sent events that reconnects
	Polling   SubscriptionKind = "poller" // pages of events, one request after the other
)

// A Subscription is everything that one reader of events requested and received. It has one cursor,
// which outlives errors, connections and replicas.
type Subscription struct {
	Kind     SubscriptionKind
	Number   int    // from 1, unique in the recorder
	Prefix   string // of the names of the locks whose events it requests
	Requests []EventRequest
	cell     *int // position of the only cell whose events these are; nil if there is one cell
}

// An EventRequest is one request: for a page of events, or for a stream.
type EventRequest struct {
	Via  string // replica or address that received the request
	Sent time.Duration
	// Opened is when the service was known to serve the request: for a page, when it was sent;
	// for a stream, when the answer began. Zero if the service never served it.
	Opened     time.Duration
	Ended      time.Duration // when the answer or the connection ended
	Failed     bool          // reports whether it ended with an error
	Cursor     int64         // cursor of the request, encoded as Delivery.Next
	CursorIn   map[int]int64 // as Delivery.NextIn
	Deliveries []Delivery
}

// A Delivery is what a subscriber received at one time: a page, or one message of a stream.
type Delivery struct {
	At time.Duration
	// Next is the cursor after the delivery, the id of an event: all events up to it have been
	// delivered. It is cursorNow for the end of the events, and cursorInvalid for a cursor that is not an id.
	Next int64
	// NextIn are the cursors in the cells of a service of several, by their positions; otherwise nil.
	NextIn map[int]int64
	// Gap reports whether the service said that events are missing before these.
	Gap bool
	// Events are shared with other deliveries of the same events; do not change them.
	Events []*lock.Event
}

// Cursors that are not the id of an event.
const (
	cursorNow     int64 = -1
	cursorInvalid int64 = -2
)

// A Subscriber records a Subscription. Its methods must be called from one goroutine.
type Subscriber struct {
	recorder *Recorder
	all      Subscription
}

// Subscribe starts the recording of a subscriber that reads the events of the locks whose names
// begin with the prefix.
func (r *Recorder) Subscribe(kind SubscriptionKind, prefix string) *Subscriber {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &Subscriber{recorder: r, all: Subscription{Kind: kind, Number: len(r.subscribers) + 1, Prefix: prefix}}
	r.subscribers = append(r.subscribers, s)
	return s
}

// Requested records that a request with that cursor is sent now.
func (s *Subscriber) Requested(via, cursor string) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	at := s.recorder.instant()
	n := EventRequest{Via: via, Sent: at, Ended: at, Cursor: cursorID(cursor), CursorIn: cursorsOf(cursor)}
	if s.all.Kind == Polling {
		n.Opened = at
	}
	s.all.Requests = append(s.all.Requests, n)
}

// Opened records that the newest request, a stream, is open.
func (s *Subscriber) Opened() {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	s.last().Opened = s.recorder.instant()
}

// Received records a page or a stream message that answers the newest request.
func (s *Subscriber) Received(page paddock.Page[lock.Event]) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	d := Delivery{At: s.recorder.instant(), Next: cursorID(page.Next), NextIn: cursorsOf(page.Next), Gap: page.Gap}
	if len(page.Items) > 0 {
		d.Events = make([]*lock.Event, len(page.Items))
	}
	for i, e := range page.Items {
		d.Events[i] = s.recorder.sharedEvent(e)
	}
	n := s.last()
	n.Ended, n.Deliveries = d.At, append(n.Deliveries, d)
}

// Ended records that the newest request has ended, with an error unless err is nil.
func (s *Subscriber) Ended(err error) {
	s.recorder.mu.Lock()
	defer s.recorder.mu.Unlock()
	n := s.last()
	n.Ended, n.Failed = s.recorder.instant(), err != nil
}

func (s *Subscriber) last() *EventRequest { return &s.all.Requests[len(s.all.Requests)-1] }

// subscription returns what was recorded until now. The caller holds the recorder's mu.
func (s *Subscriber) subscription() Subscription {
	all := s.all
	all.Requests = slices.Clone(all.Requests)
	return all
}

// sharedEvent returns a copy of the event that all subscribers share which received an equal one. A
// run of minutes delivers a hundred thousand events to each subscriber.
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

// sameEvent reports whether the events are equal field by field. Ref is ignored: it is not sent to clients.
func sameEvent(a, b lock.Event) bool {
	if !a.At.Equal(b.At) {
		return false
	}
	a.At, a.Ref, b.At, b.Ref = time.Time{}, 0, time.Time{}, 0
	return reflect.DeepEqual(a, b)
}

// cursorID returns the id in a cursor, or one of the constants above.
func cursorID(cursor string) int64 {
	switch cursor {
	case "", "0":
		return 0
	case paddock.CursorNow:
		return cursorNow
	}
	id, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || id < 0 {
		return cursorInvalid
	}
	return id
}
