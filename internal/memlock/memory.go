package memlock

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A Memory is what replicas without a database share: it forgets everything when
// the process ends. What a database does with rows and notifications, it does with
// one mutex and channels.
type Memory struct {
	mu     sync.Mutex
	bounds lock.Bounds
	token  lock.Token
	locks  map[string]lock.State
	ended  map[lock.LeaseRef]lock.Event
	events []lock.Event
	fenced map[string]lock.Fenced
	told   map[lock.Attachment]chan struct{} // the calls that wait: each is told to ask how it stands
	due    map[string]*time.Timer            // sweeps the lock when time will have changed it
	news   chan struct{}                     // closed when there is a new event, and then another
}

// New returns an empty Memory with the widest bounds.
func New() *Memory {
	bounds, err := lock.Bounds{}.Resolve()
	if err != nil {
		panic(err) // the zero Bounds go together
	}
	return &Memory{
		bounds: bounds, locks: map[string]lock.State{}, ended: map[lock.LeaseRef]lock.Event{},
		fenced: map[string]lock.Fenced{}, told: map[lock.Attachment]chan struct{}{},
		due: map[string]*time.Timer{}, news: make(chan struct{}),
	}
}

// Replica returns the service as the replica of that number serves it.
func (m *Memory) Replica(self lock.Replica) lock.Service { return replica{m, self} }

// A replica is a lock.Service: the rules of package lock over a Memory. It serves
// the calls that wait with it, and knows of those of others what a database would
// tell it.
type replica struct {
	*Memory
	self lock.Replica
}

// state returns the lock as it is written down. A call that waits keeps its
// replica known to be alive.
func (m *Memory) state(name string) lock.State {
	s, ok := m.locks[name]
	if !ok {
		return lock.State{Name: name}
	}
	s.Queue = slices.Clone(s.Queue)
	for i, w := range s.Queue {
		if m.told[w.Attachment] != nil {
			s.Queue[i].AliveUntil = time.Now().Add(lock.AliveFor)
		}
	}
	return s
}

// decide applies c and returns what it decided, unless ctx is over before.
func (r replica) decide(ctx context.Context, c lock.Command) (lock.Decision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := overdue(ctx); err != nil {
		return lock.Decision{}, err
	}
	name := c.Names()[0]
	d := c.Apply(lock.View{
		Now: time.Now(), Self: r.self, Locks: []lock.State{r.state(name)}, Ended: r.ended,
		Tokens: func() lock.Token { r.token++; return r.token },
	})
	if d.Changed {
		r.locks[name] = d.Locks[0]
	}
	r.record(d.Events)
	for _, w := range d.Promoted {
		r.tell(w.Attachment)
	}
	r.sweepAt(name, d.Due)
	return d, d.Err
}

func (m *Memory) record(events []lock.Event) {
	for _, e := range events {
		e.ID = int64(len(m.events) + 1)
		m.events = append(m.events, e)
		if e.Ref != 0 {
			m.ended[e.Ref] = e
		}
	}
	if len(events) > 0 {
		close(m.news)
		m.news = make(chan struct{})
	}
}

// tell has the call ask how it stands, on whichever replica it waits.
func (m *Memory) tell(a lock.Attachment) {
	select {
	case m.told[a] <- struct{}{}:
	default: // it has been told already, or is gone
	}
}

// sweepAt has the lock be swept at due, and no sooner; never if due is zero.
func (r replica) sweepAt(name string, due time.Time) {
	if t, ok := r.due[name]; ok {
		t.Stop()
		delete(r.due, name)
	}
	if due.IsZero() {
		return
	}
	r.due[name] = time.AfterFunc(time.Until(due), func() {
		if _, err := r.decide(context.Background(), lock.Sweep{Name: name}); err != nil {
			panic(err) // a sweep is never refused
		}
	})
}

func overdue(ctx context.Context) error {
	if ctx.Err() != nil {
		return &lock.Error{Code: lock.ErrUnavailable, Detail: "Too late.", Cause: context.Cause(ctx)}
	}
	return nil
}

func (r replica) Renew(ctx context.Context, c lock.Renew) (lock.Grant, error) {
	c, err := c.Resolve(r.bounds)
	if err != nil {
		return lock.Grant{}, err
	}
	d, err := r.decide(ctx, c)
	return granted(d), err
}

func (r replica) Release(ctx context.Context, c lock.Release) error {
	c, err := c.Resolve()
	if err != nil {
		return err
	}
	_, err = r.decide(ctx, c)
	return err
}

func (r replica) Revoke(ctx context.Context, c lock.Revoke) (lock.Lock, error) {
	c, err := c.Resolve()
	if err != nil {
		return lock.Lock{}, err
	}
	d, err := r.decide(ctx, c)
	if err != nil {
		return lock.Lock{}, err
	}
	return d.Locks[0].Lock(d.Now), nil
}

func (r replica) VerifyToken(ctx context.Context, v lock.Verify) (lock.Verdict, error) {
	v, err := v.Resolve()
	if err := cmp.Or(err, overdue(ctx)); err != nil {
		return lock.Verdict{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return v.Verdict(r.state(v.Name), time.Now()), nil
}

func (r replica) WriteFenced(ctx context.Context, w lock.FencedWrite) (lock.Fenced, error) {
	w, err := w.Resolve()
	if err := cmp.Or(err, overdue(ctx)); err != nil {
		return lock.Fenced{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	newest, err := w.Newest(r.state(w.Lock), time.Now())
	if err != nil {
		return lock.Fenced{}, err
	}
	f, err := w.Apply(r.fenced[w.Key], newest, time.Now())
	if err == nil {
		f.Value = slices.Clone(f.Value)
		r.fenced[w.Key] = f
	}
	return f, err
}

func (r replica) ReadFenced(ctx context.Context, key string) (lock.Fenced, error) {
	if err := cmp.Or(lock.CheckKey(key), overdue(ctx)); err != nil {
		return lock.Fenced{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.fenced[key]; ok {
		return f, nil
	}
	return lock.Fenced{}, &lock.Error{Code: lock.ErrNotFound, Detail: "Nothing was ever written under this key."}
}
