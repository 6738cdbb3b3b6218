package memlock

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/lock"
)

// A Memory is the shared state of replicas without a database. A mutex and channels replace rows and notifications.
type Memory struct {
	mu      sync.Mutex
	bounds  lock.Bounds
	token   lock.Token
	locks   map[string]lock.Record
	ended   map[lock.LeaseRef]lock.Event
	events  []lock.Event
	number  int64 // of the last event, which has its id from it
	fenced  map[string]lock.FencedValue
	done    map[operation]bool
	stale   paddock.StaleReports
	trees   lock.Trees
	freezes map[lock.Scope]lock.Freeze
	rules   map[lock.Scope]lock.Rule
	roots   []lock.Tree              // the same, in order
	calls   map[lock.Attachment]call // the waiting calls
	alarms  map[alarm]*time.Timer

	sessions      map[lock.SessionRef]lock.Session
	sessionAlarms map[lock.SessionRef]*time.Timer

	news  chan struct{} // closed and replaced at each event, and when a session ends
	clock clock
	ids   numbering // of the events
}

// A numbering gives events their ids, and tokens their values, from their numbers, which begin at 1.
type numbering struct{ step, offset int64 }

func (n numbering) of(number int64) int64 { return number*n.step + n.offset }

// number returns the number of the event with the id, or of the last one before it.
func (n numbering) number(id int64) int64 { return (id - n.offset) / n.step }

// An alarm identifies the timer for the next sweep of a lock by a replica.
type alarm struct {
	self lock.Replica
	name string
}

// An operation identifies a fenced write that is to be done once.
type operation struct{ key, id string }

// New returns an empty Memory with the widest bounds, whose clock is that of package time.
func New() *Memory { return newMemory(clock{now: time.Now}) }

// NewCell returns an empty Memory that is the cell at the position: ids and tokens of other positions are different.
func NewCell(position int) *Memory {
	m := New()
	m.ids = numbering{step: placement.Step, offset: int64(position)}
	return m
}

func newMemory(c clock) *Memory {
	bounds, err := lock.Bounds{}.Resolve()
	if err != nil {
		panic(err) // the zero Bounds are valid
	}
	return &Memory{
		bounds: bounds, locks: map[string]lock.Record{}, ended: map[lock.LeaseRef]lock.Event{}, trees: lock.Trees{},
		freezes: map[lock.Scope]lock.Freeze{}, rules: map[lock.Scope]lock.Rule{},
		fenced: map[string]lock.FencedValue{}, done: map[operation]bool{}, calls: map[lock.Attachment]call{},
		alarms: map[alarm]*time.Timer{}, sessions: map[lock.SessionRef]lock.Session{},
		sessionAlarms: map[lock.SessionRef]*time.Timer{}, news: make(chan struct{}), clock: c, ids: numbering{step: 1},
	}
}

// Replica returns the service of the replica with that number.
func (m *Memory) Replica(self lock.Replica) paddock.Service { return replica{m, self} }

// A replica is a paddock.Service on a Memory. It knows its own waiting calls, and of those of others what a database
// would show.
type replica struct {
	*Memory
	self lock.Replica
}

// state returns the lock. A waiting call keeps its replica alive.
func (m *Memory) state(name string) lock.Record {
	s, ok := m.locks[name]
	if !ok {
		return lock.Record{Name: name}
	}
	s.Leases, s.Queue = slices.Clone(s.Leases), slices.Clone(s.Queue)
	for i, l := range s.Leases {
		s.Leases[i] = l.In(m.session(l.Session))
	}
	for i, w := range s.Queue {
		read := *w
		if _, waits := m.calls[w.Attachment]; waits {
			read.AliveUntil = m.clock.now().Add(lock.ReplicaTTL)
		}
		read.Lease = w.Lease.In(m.session(w.Lease.Session))
		s.Queue[i] = &read
	}
	return s
}

// An outcome is a decision, with an instant of package time before it.
type outcome struct {
	lock.Decision
	began time.Time
}

// decide applies c, unless ctx has ended.
func (r replica) decide(ctx context.Context, c lock.Command) (outcome, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := contextError(ctx); err != nil {
		return outcome{}, err
	}
	c, err := c.In(r.policy())
	if err != nil {
		return outcome{}, err
	}
	r.expireSessions()
	began := time.Now()
	d := r.apply(lock.CallerFrom(ctx), c)
	for ready := d.ReadySets; len(ready) > 0; { // without them, decisions could be read in which a set is not granted yet
		next := r.apply(lock.Caller{}, lock.Sweep{Locks: ready[0]})
		ready = append(ready[1:], next.ReadySets...)
	}
	return outcome{d, began}, d.Err
}

// apply decides c and stores what was decided. The caller holds the mutex.
func (r replica) apply(by lock.Caller, c lock.Command) lock.Decision {
	drawn := 0
	v := lock.View{
		Now: r.clock.now(), Caller: by, Self: r.self, Ended: r.ended, Sessions: r.sessions, Policy: r.policy(),
		Tokens: func() lock.Token { drawn++; return lock.Provisional(drawn - 1) }, // as the store decides
	}
	for _, name := range c.Names() {
		v.Locks = append(v.Locks, r.state(name))
	}
	d := c.Apply(v)
	r.setTokens(&d, drawn)
	for _, after := range d.Locks {
		if d.Changed {
			r.locks[after.Name] = after
		}
		r.sweepAt(after.Name, d.Due)
	}
	for _, l := range d.SessionLosses {
		s := r.sessions[l.Session]
		s.RevokedLeases++
		r.sessions[l.Session] = s
	}
	r.record(d.Events)
	for _, w := range slices.Concat(d.Promoted, d.Ousted) {
		r.wake(w.Attachment)
	}
	return d
}

// setTokens gives the decision as many tokens as it has drawn. In a cell, the first of each decision is one of its own
// numbers, as in a database, and there are MaxTokens between two of them.
func (m *Memory) setTokens(d *lock.Decision, drawn int) {
	first := m.token + 1
	if m.ids.step > 1 && drawn > 0 {
		first = lock.Token(m.ids.of(m.ids.number(int64(m.token/lock.MaxTokens))+1)) * lock.MaxTokens
	}
	d.SetTokens(first)
	if drawn > 0 {
		m.token = first + lock.Token(drawn) - 1
	}
}

func (m *Memory) record(events []lock.Event) {
	for _, e := range events {
		m.number++
		e.ID = m.ids.of(m.number)
		m.events = append(m.events, e)
		if e.Ref != 0 {
			m.ended[e.Ref] = e
		}
	}
	if len(events) > 0 {
		m.announce()
	}
}

// announce makes calls that wait look again.
func (m *Memory) announce() {
	close(m.news)
	m.news = make(chan struct{})
}

// wake makes the call claim its grant, on any replica.
func (m *Memory) wake(a lock.Attachment) {
	select {
	case m.calls[a].wake <- struct{}{}:
	default: // it was woken already, or has ended
	}
}

// sweepAt replaces the timer of the replica for the next sweep of the lock. A zero due removes it.
func (r replica) sweepAt(name string, due time.Time) {
	a := alarm{r.self, name}
	if t, ok := r.alarms[a]; ok {
		t.Stop()
		delete(r.alarms, a)
	}
	if !due.IsZero() {
		r.alarms[a] = time.AfterFunc(r.clock.until(due), func() { r.sweep(name) })
	}
}

func (r replica) sweep(name string) {
	if _, err := r.decide(context.Background(), lock.Sweep{Locks: []string{name}}); err != nil {
		panic(err) // a sweep is never refused
	}
}

func contextError(ctx context.Context) error {
	if ctx.Err() != nil {
		return &lock.Error{Code: lock.ErrUnavailable, Detail: "The context has ended.", Cause: context.Cause(ctx)}
	}
	return nil
}

func (r replica) Renew(ctx context.Context, c lock.Renew) (lock.Grant, error) {
	c, err := c.Resolve(r.bounds)
	if err != nil {
		return lock.Grant{}, err
	}
	return grantOf(r.decide(ctx, c))
}

func (r replica) Release(ctx context.Context, c lock.Release) error {
	c, err := c.Resolve()
	if err != nil {
		return err
	}
	_, err = r.decide(ctx, c)
	return err
}

func (r replica) Batch(ctx context.Context, items []lock.Command) []paddock.Result {
	return paddock.BatchSequentially(ctx, r, items)
}

func (r replica) Revoke(ctx context.Context, c lock.Revoke) (lock.Lock, error) {
	c, err := c.Resolve()
	if err != nil {
		return lock.Lock{}, err
	}
	var cmd lock.Command = c
	d, err := r.decide(ctx, cmd)
	for err == nil && d.FollowUp != nil {
		cmd = d.FollowUp
		d, err = r.decide(ctx, cmd)
	}
	if err != nil {
		return lock.Lock{}, err
	}
	l := d.Locks[slices.Index(cmd.Names(), c.Name)].Lock(d.Now)
	r.mu.Lock()
	defer r.mu.Unlock()
	l.AddPolicy(r.policy())
	return l, nil
}

func (r replica) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verification, error) {
	v, err := v.Resolve()
	if err := cmp.Or(err, contextError(ctx)); err != nil {
		return lock.Verification{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.Check(r.state(v.Name), r.clock.now()), nil
}

func (r replica) ReportStale(ctx context.Context, c lock.ReportStale) (bool, error) {
	return r.stale.Record(ctx, c, r.clock.now(), r, func(ctx context.Context, c lock.Command) error {
		_, err := r.decide(ctx, c)
		return err
	})
}

func (r replica) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.FencedValue, error) {
	w, err := w.Resolve()
	if err := cmp.Or(err, contextError(ctx)); err != nil {
		return lock.FencedValue{}, err
	}
	f, err := r.writeFenced(w)
	if report, stale := w.Stale(err); stale {
		if _, failed := r.ReportStale(ctx, report); failed != nil && !lock.NotStale(failed) {
			return f, failed
		}
	}
	return f, err
}

func (r replica) writeFenced(w lock.FencedWrite) (lock.FencedValue, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.InTree = r.trees.Contains(w.Lock)
	newest, err := w.RequiredToken(r.state(w.Lock), r.clock.now())
	if err != nil {
		return lock.FencedValue{}, err
	}
	o := operation{w.Key, w.OperationID}
	w.Done = r.done[o]
	f, err := w.Apply(r.fenced[w.Key], newest, r.clock.now())
	if err == nil {
		f.Value = slices.Clone(f.Value)
		r.fenced[w.Key] = f
		r.done[o] = w.OperationID != ""
	}
	return f, err
}

func (r replica) ReadFenced(ctx context.Context, key string) (lock.FencedValue, error) {
	if err := cmp.Or(lock.CheckKey(key), contextError(ctx)); err != nil {
		return lock.FencedValue{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.fenced[key]; ok {
		return f, nil
	}
	return lock.FencedValue{}, &lock.Error{
		Code:   lock.ErrNotFound,
		Detail: "No resource was ever written under this key.",
	}
}
