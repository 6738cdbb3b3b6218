package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"
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
