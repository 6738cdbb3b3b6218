package waiters

import (
	"context"
	"embed"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-lock/paddock/internal/tracing"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/row"
)

//go:embed sql/*.sql
var files embed.FS

// maxHandled is how many ended calls are remembered. It is more than can end between a commit and the delivery of the
// grants that it made. A Leave in the background may take longer: then a second one gives the grant back, too.
const maxHandled = 4096

// A Submit decides a command. If it was decided, the Outcome is its decision and the error is the decision's. If not,
// the Outcome is nil, and the error is lock.ErrUnavailable if certainly nothing was done.
type Submit func(context.Context, lock.Command) (*row.Outcome, error)

// A Registry is the calls that wait on this replica. Make one with New. All methods can be called at any time unless
// they say otherwise.
type Registry struct {
	db     *database.DB
	self   lock.Replica
	limit  int
	submit Submit

	mu    sync.Mutex
	calls map[lock.Attachment]*waitingCall
	// handled are the newest ended calls whose late grants need no Leave: the client was answered with the grant, or a
	// Leave in the background gives it back.
	handled []lock.Attachment

	drained  context.Context // ends with Drain
	drain    context.CancelFunc
	active   sync.WaitGroup // calls
	cleanup  sync.WaitGroup // Leaves in the background
	notifier notifier

	// As of the last heartbeat: calls that wait on other replicas, and whether another replica has subscribers of
	// events.
	remote  atomic.Int64
	watched atomic.Bool
	peers   []lock.Replica // the other replicas that were alive then; only for the goroutine that sends heartbeats
}

// A position says where a call waits.
type position struct {
	names []string  // of the locks, with their ancestors in trees
	place int64     // at the first of them
	since time.Time // when the place was joined, by this call or by an earlier one of the same acquire
}

// A waitingCall is a call that waits on this replica.
type waitingCall struct {
	locks       []string
	lease       lock.LeaseID
	session     lock.SessionID
	hasTask     bool
	once        bool
	generatedID bool // the lease_id was generated: no client can return to the place
	began       time.Time
	wait        time.Duration
	attachment  lock.Attachment
	position    atomic.Pointer[position] // nil until it has joined a queue
	granted     chan *row.Outcome        // receives the grant, once
	woken       chan struct{}            // has a value when the call should send a Claim
	deadlock    chan []string            // receives the locks of a deadlock whose victim the call is
}

// New returns the registry of the replica self. limit is the greatest number of waiting calls on all replicas
// together.
func New(db *database.DB, self lock.Replica, limit int, submit Submit) *Registry {
	r := &Registry{db: db, self: self, limit: limit, submit: submit, calls: make(map[lock.Attachment]*waitingCall)}
	r.drained, r.drain = context.WithCancel(context.Background())
	r.notifier.pending = make(chan struct{}, 1)
	return r
}

// Drain ends all waiting calls with lock.ErrUnavailable; they keep their places. Further calls are refused.
func (r *Registry) Drain() {
	r.mu.Lock() // so that no call is registered after Drain has returned
	defer r.mu.Unlock()
	r.drain()
}

// Draining returns a channel that is closed by Drain.
func (r *Registry) Draining() <-chan struct{} { return r.drained.Done() }

// Waiting returns the number of calls that wait on this replica.
func (r *Registry) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// Wait waits until no call is left. Call it after Drain.
func (r *Registry) Wait() { r.active.Wait() }

// Close waits for the Leaves in the background, and deletes this replica's heartbeat. Call it when the database is
// stopped, and after Run, Wait and the last Notify have returned.
func (r *Registry) Close() {
	r.cleanup.Wait()
	r.forgetSelf()
}

// register adds a call for a, which the caller must unregister, and completes a. It fails if this replica drains.
func (r *Registry) register(a *lock.Acquire) (*waitingCall, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.drained.Err() != nil {
		return nil, database.Stopping()
	}
	a.LimitReached = len(r.calls)+int(r.remote.Load()) >= r.limit
	c := &waitingCall{
		locks: a.Names(), lease: a.LeaseID, session: a.SessionID, attachment: lock.Attachment(1 + rand.Int64N(1<<62)),
		hasTask: a.Thread() != "", once: a.Once, generatedID: a.GeneratedID, began: time.Now(), wait: a.Wait,
		granted: make(chan *row.Outcome, 1), woken: make(chan struct{}, 1), deadlock: make(chan []string, 1),
	}
	a.Attachment, a.Replica = c.attachment, r.self
	r.calls[c.attachment] = c
	r.active.Add(1)
	return c, nil
}

// unregister removes the call. granted tells whether its client is answered with a grant.
func (r *Registry) unregister(c *waitingCall, granted bool) {
	if granted {
		r.markHandled(c.attachment) // before it is removed, so that a late grant is not given back in between
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c.attachment)
	r.active.Done()
}

// markHandled records that no grant needs to be given back for the call once it has ended.
func (r *Registry) markHandled(a lock.Attachment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handled = append(r.handled, a)
	r.handled = r.handled[max(len(r.handled)-maxHandled, 0):]
}

// deliver hands the grant to the call, if it waits still. It returns false if the grant must be given back. That is
// not so if the call got the grant as the answer to its own Leave, and has ended, or if a Leave in the background
// gives it back.
func (r *Registry) deliver(a lock.Attachment, grant *row.Outcome) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[a]
	if c == nil {
		return slices.Contains(r.handled, a)
	}
	select {
	case c.granted <- grant:
	default: // it has the grant already
	}
	return true
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

// WakeScopes wakes the calls that wait for locks of the scopes, whose freezes or rules have changed, or that are
// decided about elsewhere now.
func (r *Registry) WakeScopes(scopes []lock.Scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if slices.ContainsFunc(scopes, c.concerns) {
			c.wake()
		}
	}
}

// concerns reports whether a freeze or a rule of the scope may keep the call waiting: if the scope has one of its locks or
// of their ancestors, or, in a tree, locks below.
func (c *waitingCall) concerns(s lock.Scope) bool {
	if at := c.position.Load(); at != nil && slices.ContainsFunc(at.names, s.Covers) {
		return true
	}
	return slices.ContainsFunc(c.locks, func(name string) bool { return s.Covers(name) || strings.HasPrefix(string(s), name+":") })
}

// WakeAll wakes all calls.
func (r *Registry) WakeAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		c.wake()
	}
}

// wakeSets wakes calls that wait for several locks: of those with the same first lock the one that is first there,
// since no other can be granted it before. Their Claims find what a lost Sweep of a set that is ready would have
// found.
func (r *Registry) wakeSets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	firsts := make(map[string]*waitingCall)
	for _, c := range r.calls {
		if !c.waitsForSeveral() {
			continue
		}
		if before := firsts[c.firstLock()]; before == nil || c.place() < before.place() {
			firsts[c.firstLock()] = c
		}
	}
	for _, c := range firsts {
		c.wake()
	}
}

// firstLock returns the name of the first of the locks.
func (c *waitingCall) firstLock() string {
	if at := c.position.Load(); at != nil {
		return at.names[0]
	}
	return c.locks[0]
}

// setPosition records where the call waits: with the ancestors of its locks in trees, these may be more than its own.
func (c *waitingCall) setPosition(out *row.Outcome) {
	at := &position{place: out.Place, since: out.Until(out.JoinedAt), names: make([]string, len(out.Locks))}
	for i := range out.Locks {
		at.names[i] = out.Locks[i].Name
	}
	c.position.Store(at)
}

// place returns the place of the call at its first lock, zero if it has not joined a queue.
func (c *waitingCall) place() int64 {
	if at := c.position.Load(); at != nil {
		return at.place
	}
	return 0
}

// waitsForSeveral reports whether the call waits for several locks.
func (c *waitingCall) waitsForSeveral() bool {
	at := c.position.Load()
	return at != nil && len(at.names) > 1
}

func (c *waitingCall) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// queued returns the calls that have joined a queue, one slice a column of sql/stale_waiters.sql, and the number of
// all calls.
func (r *Registry) queued() (names []string, places, attachments []int64, all int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if place := c.place(); place > 0 {
			names, places = append(names, c.firstLock()), append(places, place)
			attachments = append(attachments, int64(c.attachment))
		}
	}
	return names, places, attachments, len(r.calls)
}

// leaveTimeout bounds the attempts to leave a queue in the background. By then the place has lapsed by itself.
const leaveTimeout = lock.MaxWait + lock.PlaceRetention

// Acquire acquires the lock, and waits for it up to a.Wait. The error is the decision's, or one of package lock if
// there is no decision. When ctx ends, Acquire returns lock.ErrUnavailable and gives back what the call has or gets.
// While it waits it holds on to no Outcome, and to little stack.
func (r *Registry) Acquire(ctx context.Context, a *lock.Acquire) (_ *row.Outcome, err error) {
	over := time.NewTimer(a.Wait)
	defer over.Stop()
	c, err := r.register(a)
	if err != nil {
		return nil, err
	}
	defer func() { r.unregister(c, err == nil) }()
	out, err := r.submit(ctx, *a)
	begun := !errors.Is(err, lock.ErrUnavailable)
	if err == nil && out.Queued {
		waiting, span := startWait(ctx, c.firstLock(), a.Holder, out.Place)
		for err == nil && out.Queued {
			c.setPosition(out)
			out, err = r.await(waiting, c, over.C, a.KeepPlace)
		}
		span.End()
	}
	if err == nil && ctx.Err() != nil {
		err = database.Departed(context.Cause(ctx)) // the grant came while the client left
	}
	if begun && undecided(out, err) {
		r.leaveInBackground(lock.CallerFrom(ctx), c.leave(true, true)) // the client may return to its place
	}
	return out, err
}

// startWait begins the span of a wait. It is a function of its own so that Acquire, which stays on the stack, is small.
func startWait(ctx context.Context, name, holder string, place int64) (context.Context, trace.Span) {
	return tracing.Start(ctx, "wait in the queue",
		trace.WithAttributes(tracing.Lock.String(name), tracing.Holder.String(holder), tracing.Place.Int64(place)))
}

// undecided reports whether a submitted command failed without a decision.
func undecided(out *row.Outcome, err error) bool { return err != nil && (out == nil || out.Err == nil) }

// await sleeps until something is to be done for the call, and does it. It repeats a Claim whose answer was lost,
// since the second one finds what the first has done. If it returned the error instead, the waiter would be skipped
// until its client returns.
func (r *Registry) await(ctx context.Context, c *waitingCall, over <-chan time.Time, keepPlace bool) (*row.Outcome, error) {
	pause := database.NewPause()
	for retry := (<-chan time.Time)(nil); ; {
		select {
		case grant := <-c.granted:
			return grant, nil
		case <-c.woken:
		case <-retry:
		case locks := <-c.deadlock:
			out, err := r.submit(ctx, lock.BreakDeadlock{Locks: locks, LeaseID: c.lease, Attachment: c.attachment})
			if err != nil && !errors.Is(err, lock.ErrUnavailable) {
				return out, err
			}
			continue // it waits still
		case <-over:
			return r.submit(ctx, c.leave(keepPlace, false))
		case <-r.drained.Done():
			out, err := r.submit(ctx, c.leave(true, false))
			if !undecided(out, err) && c.mayWaitAfter(err) {
				err = database.Stopping()
			}
			return out, err
		case <-ctx.Done():
			return nil, database.Departed(context.Cause(ctx))
		}
		out, err := r.submit(ctx, lock.Claim{
			Locks: c.locks, LeaseID: c.lease, Attachment: c.attachment, Place: c.place(), SessionID: c.session, Once: c.once,
		})
		if !errors.Is(err, lock.ErrUnknownOutcome) || ctx.Err() != nil {
			return out, err
		}
		retry = time.After(pause.NextBackOff())
	}
}

// mayWaitAfter reports whether the call would wait on after this refusal.
func (c *waitingCall) mayWaitAfter(err error) bool {
	return errors.Is(err, lock.ErrHeld) || errors.Is(err, lock.ErrFrozen) || errors.Is(err, lock.ErrAlreadyDone) && !c.once ||
		errors.Is(err, lock.ErrUnavailable)
}

// leave returns the command that ends the wait of the call. It keeps no place that no client can return to.
func (c *waitingCall) leave(keepPlace, disconnected bool) lock.Leave {
	return lock.Leave{
		Locks: c.locks, LeaseID: c.lease, Attachment: c.attachment, SessionID: c.session, Once: c.once, Place: c.place(),
		KeepPlace: keepPlace && !c.generatedID, Disconnected: disconnected, WaitLeft: max(c.wait-time.Since(c.began), 0),
	}
}

// leaveInBackground submits the Leave until it is decided, for leaveTimeout at most. What is left then ends by itself:
// the place lock.PlaceRetention after the wait, the lease with its TTL.
func (r *Registry) leaveInBackground(by lock.Caller, l lock.Leave) {
	r.markHandled(l.Attachment)
	r.cleanup.Go(func() {
		ctx, cancel := context.WithTimeout(lock.WithCaller(r.db.Context(), by), leaveTimeout)
		defer cancel()
		out, err := r.submit(ctx, l)
		for undecided(out, err) && ctx.Err() == nil && r.db.Sleep(database.Jittered(database.MaxPause)) {
			out, err = r.submit(ctx, l)
		}
		if undecided(out, err) && r.db.Context().Err() == nil {
			r.db.Log.Warn("cannot remove an ended call from its queue", "locks", l.Names(), "error", database.CauseOf(err))
		}
	})
}
