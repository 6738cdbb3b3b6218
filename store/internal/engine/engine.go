package engine

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/internal/tracing"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
	"github.com/paddock-lock/paddock/store/internal/policy"
	"github.com/paddock-lock/paddock/store/internal/row"
)

const (
	// MaxBatch is the most calls that are decided together.
	MaxBatch = 1000
	// MaxQueue is the most calls of one worker that wait for a batch, and the most acquires in its backlogs besides.
	MaxQueue = 20_000
	// MaxWorkers is the most batch workers. Each uses a connection.
	MaxWorkers = 64
)

// Options configure an Engine.
type Options struct {
	DB      *database.DB
	Epochs  *epoch.Monitor
	Policy  *policy.Catalog
	Self    lock.Replica
	Workers int // 1 to MaxWorkers. Commands on one lock are always in the batches of the same one
	// AllowHold: leases that stay are granted also where a fail-over may lose them.
	AllowHold bool
	// Publish receives what was decided, once it is committed and before the callers are answered.
	Publish func([]*row.Outcome)
}

type call = batch.Call[request, *row.Outcome]

// A request is a command as the caller gave it, and as it is decided under the policy, with the ancestors of its locks.
type request struct {
	lock.Command
	traits  lock.Traits
	caller  lock.Caller
	home    string // the lock by which it finds its worker and its turn
	decided lock.Command
	names   []string         // of decided
	asked   []string         // of the command, without the ancestors of its locks
	refs    []lock.LeaseRef  // that decided needs the end events of, one for each name of asked, see lock.Traits
	policy  *policy.Snapshot // that decided is for
}

// in sets what is decided under the policy.
func (r *request) in(t *policy.Snapshot) {
	if r.decided != nil && r.policy == t {
		return
	}
	r.decided, r.names, r.policy = r.Command, r.asked, t
	if elsewhere := t.Elsewhere(r.asked...); elsewhere != nil {
		r.decided = refused{r.Command, elsewhere}
	} else if t.ChangesCommands() || r.traits.NeedsRule {
		var err error
		if r.decided, err = r.In(&t.Policy); err != nil {
			r.decided = refused{r.Command, err}
		}
		r.names = r.decided.Names()
	}
}

// isAboutLease reports whether the command is about a lease, so that it keeps its order among those about it.
func (r *request) isAboutLease() bool { return r.traits.Lease != lock.LeaseID{} }

// creates reports whether locks of the request that are not in the table are created before it is decided: those that
// it may be granted, unless it is refused whatever the state of its locks. Other commands find nothing where nothing is.
// If one writes all the same, it misses, and its locks are created when they are locked.
func (r *request) creates(locked bool) bool {
	_, never := r.decided.(refused)
	if a, asks := r.decided.(lock.Acquire); asks {
		never = a.IsOutside()
	}
	return !never && (r.traits.Grants || locked)
}

// A refused is a command that the policy refuses, whatever the state of its locks. It is decided like others, so
// that the policy is that of the database.
type refused struct {
	lock.Command
	err error
}

// Apply refuses.
func (r refused) Apply(v lock.View) lock.Decision {
	return lock.Decision{Now: v.Now, Locks: v.Locks, Err: r.err}
}

// newRequest returns the request of the command, as it is decided under the policy. Commands on the same locks have the same
// home, and so keep their order. Other workers may decide on the other locks, as other replicas do: the swap compares all
// of them.
func newRequest(cmd lock.Command, in *policy.Snapshot) (r request) {
	r.set(cmd, in)
	return r
}

// set makes r a new request in place, since a request is large for a stack.
func (r *request) set(cmd lock.Command, in *policy.Snapshot) {
	r.Command, r.traits, r.asked = cmd, cmd.Traits(), cmd.Names()
	r.home, r.refs = r.asked[0], r.traits.Refs(r.asked)
	r.in(in)
}

// newCall returns a call of the command for the caller with this context.
func (s *shared) newCall(ctx context.Context, cmd lock.Command) *call {
	c := batch.NewCall[request, *row.Outcome](request{})
	c.Req.set(cmd, s.policy.Newest())
	c.Req.caller = lock.CallerFrom(ctx)
	c.Caller = tracing.Recorded(ctx)
	return c
}

// An Engine decides commands on locks. Make one with New.
type Engine struct{ *shared }

// shared is what the workers share.
type shared struct {
	db        *database.DB
	epochs    *epoch.Monitor
	policy    *policy.Catalog
	self      lock.Replica
	allowHold bool
	publish   func([]*row.Outcome)
	maxLag    time.Duration // row.MaxLag; longer in tests, since a busy machine may take long

	workers []*worker
	seed    maphash.Seed
	lanes   lanes
	late    chan struct{} // has a value for each commit that takes long
}

// New returns an Engine.
func New(o Options) *Engine {
	e := &Engine{&shared{
		db: o.DB, epochs: o.Epochs, policy: o.Policy, self: o.Self, allowHold: o.AllowHold, publish: o.Publish, maxLag: row.MaxLag,
		seed: maphash.MakeSeed(), late: make(chan struct{}, o.DB.Share()),
	}}
	e.lanes.limit = make(chan struct{}, o.DB.Share())
	for range o.Workers {
		w := &worker{shared: e.shared}
		w.inbox = newInbox(w.serve)
		e.workers = append(e.workers, w)
	}
	return e
}

// Late returns how many commits have not been answered for so long that their batches are not waited for any more.
func (e *Engine) Late() int { return len(e.late) }

// LateAfter is how long a commit takes until Late counts it.
const LateAfter = commitPatience

// Wait returns when nothing is queued and nothing runs.
func (e *Engine) Wait() {
	for _, w := range e.workers {
		w.inbox.wait()
	}
	e.lanes.wait()
}

// Do decides the command in a batch, and returns what came of it once it is committed. The error is the refusal, or
// one of package lock: ErrUnavailable if the command certainly had no effect, ErrUnknownOutcome if it may have had
// one. The outcome is nil if there is no decision. Do not keep it for long: it holds on to its whole batch.
func (e *Engine) Do(ctx context.Context, cmd lock.Command) (*row.Outcome, error) {
	if err := e.db.Admit(ctx); err != nil {
		return nil, err
	}
	c := e.newCall(ctx, cmd)
	w := e.workerOf(c)
	queued, lingers := false, false
	if c.Req.traits.Queue != lock.NoQueue {
		queued, lingers = w.cache.queued(c.Req.home, e.self, c.Req.traits)
	}
	return answered(w.inbox.do(ctx, c, queued, lingers))
}

// DoAll decides the commands, like Do for each, and returns what came of each. They join their batches together: of
// the commands of one worker either all find room or none.
func (e *Engine) DoAll(ctx context.Context, cmds []lock.Command) ([]*row.Outcome, []error) {
	calls := make([]*call, len(cmds))
	for i, cmd := range cmds {
		calls[i] = e.newCall(ctx, cmd)
	}
	if err := e.db.Admit(ctx); err != nil {
		refuse(calls, err)
	} else {
		e.enqueue(calls)
	}
	outcomes, errs := make([]*row.Outcome, len(calls)), make([]error, len(calls))
	// The last is answered last, mostly, so one wait is enough. And if the context ends, nothing is done on a lock
	// after a command on it was given up.
	for i := len(calls) - 1; i >= 0; i-- {
		outcomes[i], errs[i] = answered(calls[i].Wait(ctx))
	}
	return outcomes, errs
}

// enqueue queues the calls with their workers, in order. Those for which a worker has no room are refused.
func (e *shared) enqueue(calls []*call) {
	byWorker := make(map[*worker][]*call, len(e.workers))
	for _, c := range calls {
		w := e.workerOf(c)
		byWorker[w] = append(byWorker[w], c)
	}
	for w, calls := range byWorker {
		if !w.inbox.offer(calls...) {
			refuse(calls, database.Busy(errFull))
		}
	}
}

// workerOf returns the worker of the call.
func (e *shared) workerOf(c *call) *worker {
	return e.workers[maphash.String(e.seed, c.Req.home)%uint64(len(e.workers))]
}

// answered turns the answer of a batch into one of package lock: the decision and its refusal, or no decision and an
// error.
func answered(o *row.Outcome, err error) (*row.Outcome, error) {
	if err != nil {
		return nil, Unanswered(err)
	}
	return o, o.Err
}

// Unanswered returns the error of package lock for a call that package batch has not answered, or err if it is one.
func Unanswered(err error) error {
	canceled := (*batch.CanceledError)(nil)
	switch {
	case errors.As(err, &canceled) && canceled.Started:
		return database.UnknownOutcome(err)
	case errors.As(err, &canceled):
		return database.Departed(err)
	case errors.Is(err, errFull):
		return database.Busy(err)
	}
	return err
}
