package waiters

import (
	"context"
	"embed"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

//go:embed sql/*.sql
var files embed.FS

// maxRecent is how many calls that ended with a grant are remembered. It is more than can end between a commit and the
// delivery of the grants that it made.
const maxRecent = 4096

// A Submit decides a command. If it was decided, the Outcome is its decision and the error is the decision's. If not,
// the Outcome is zero, and the error is lock.ErrUnavailable if certainly nothing was done.
type Submit func(context.Context, lock.Command) (row.Outcome, error)

// A Registry is the calls that wait on this replica. Make one with New. All methods can be called at any time unless
// they say otherwise.
type Registry struct {
	db     *database.DB
	self   lock.Replica
	limit  int
	submit Submit

	mu      sync.Mutex
	calls   map[lock.Attachment]*call
	remote  int                      // calls that wait on other replicas, as of the last heartbeat
	recent  []lock.Attachment        // calls that ended with a grant, a ring
	oldest  int                      // the index in recent that is replaced next
	leaving map[lock.Attachment]bool // ended calls that have a Leave in the background
	drained chan struct{}            // closed by Drain

	active   sync.WaitGroup // calls
	cleanup  sync.WaitGroup // Leaves in the background
	notifier notifier
	watched  atomic.Bool // another replica has subscribers of events, as of the last heartbeat
}

// A call is one waiting call.
type call struct {
	name       string
	lease      lock.LeaseID
	attachment lock.Attachment
	place      int64            // zero until it has joined the queue; guarded by Registry.mu
	granted    chan row.Outcome // receives the grant, once
	woken      chan struct{}    // has a value when the call should send a Claim
}

// New returns the registry of the replica self. limit is the greatest number of waiting calls on all replicas
// together.
func New(db *database.DB, self lock.Replica, limit int, submit Submit) *Registry {
	return &Registry{
		db: db, self: self, limit: limit, submit: submit,
		calls: make(map[lock.Attachment]*call), leaving: make(map[lock.Attachment]bool), drained: make(chan struct{}),
		notifier: notifier{pending: make(chan struct{}, 1)},
	}
}

// Drain ends all waiting calls with lock.ErrUnavailable; they keep their places. Further calls are refused.
func (r *Registry) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.draining() {
		close(r.drained)
	}
}

// Draining returns a channel that is closed by Drain.
func (r *Registry) Draining() <-chan struct{} { return r.drained }

func (r *Registry) draining() bool {
	select {
	case <-r.drained:
		return true
	default:
		return false
	}
}

// Wait waits until no call is left. Call it after Drain.
func (r *Registry) Wait() { r.active.Wait() }

// register adds a call, which the caller must unregister. limitReached tells whether the limit was reached before. It
// fails if this replica drains.
func (r *Registry) register(a lock.Acquire) (c *call, limitReached bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining() {
		return nil, false, database.Stopping()
	}
	limitReached = len(r.calls)+r.remote >= r.limit
	c = &call{
		name: a.Name, lease: a.LeaseID, attachment: lock.Attachment(1 + rand.Int64N(1<<62)),
		granted: make(chan row.Outcome, 1), woken: make(chan struct{}, 1),
	}
	r.calls[c.attachment] = c
	r.active.Add(1)
	return c, limitReached, nil
}

// unregister removes the call. granted tells whether its client is answered with a grant.
func (r *Registry) unregister(c *call, granted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c.attachment)
	if granted {
		if len(r.recent) < maxRecent {
			r.recent = append(r.recent, 0)
		}
		r.recent[r.oldest] = c.attachment
		r.oldest = (r.oldest + 1) % maxRecent
	}
	r.active.Done()
}

// joined records the place that the call has in its queue.
func (r *Registry) joined(c *call, place int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.place = place
}

// deliver hands the grant to the call, if it waits still. It returns false if the grant must be given back. That is
// not so if the call got the grant as the answer to its own Leave, and has ended, or if a Leave in the background is
// about to give it back.
func (r *Registry) deliver(a lock.Attachment, grant row.Outcome) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[a]
	if c == nil {
		return r.leaving[a] || slices.Contains(r.recent, a)
	}
	select {
	case c.granted <- grant:
	default: // it has the grant already
	}
	return true
}

// setLeaving records whether a Leave for the call runs in the background.
func (r *Registry) setLeaving(a lock.Attachment, leaving bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if leaving {
		r.leaving[a] = true
	} else {
		delete(r.leaving, a)
	}
}

// wake wakes those of the calls that wait here.
func (r *Registry) wake(attachments ...lock.Attachment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range attachments {
		if c := r.calls[a]; c != nil {
			c.wake()
		}
	}
}

func (r *Registry) wakeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		c.wake()
	}
}

func (c *call) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// A queued is the calls that have joined a queue: one slice a column of sql/stale_waiters.sql.
type queued struct {
	names               []string
	places, attachments []int64
}

// queued returns the calls that have joined a queue, and the number of all calls.
func (r *Registry) queued() (q queued, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c.place > 0 {
			q.names = append(q.names, c.name)
			q.places = append(q.places, c.place)
			q.attachments = append(q.attachments, int64(c.attachment))
		}
	}
	return q, len(r.calls)
}

// setRemote records how many calls wait on other replicas.
func (r *Registry) setRemote(calls int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remote = calls
}
