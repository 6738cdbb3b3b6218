package webtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

// Noon is the initial time of a fixture's clock. It is far from today, to detect uses of the wall clock.
var Noon = time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC)

// self is the replica of a fixture, where all calls wait.
const self lock.Replica = 1

// A Service is a minimal paddock.Service in memory, with the rules of package lock. It sends events to its feed. Methods
// that the page does not call panic.
type Service struct {
	paddock.Service
	Feed       *Feed
	mu         sync.Mutex
	now        time.Time
	states     map[string]lock.Record
	LastToken  lock.Token
	Calls      int                  // of acquire; the number of a call is its lease_id and attachment
	SearchedTo time.Time            // pages of events say so, if it is not zero
	Forgotten  bool                 // older events are not kept any more
	Broken     []paddock.Unreadable // on each page of events
	PageSize   int                  // of a page; zero: the query's
	fault      error                // of every call; nil: none
	lists      int                  // calls of Locks
	revoked    []lock.Revoke
}

// NewService returns a service without locks, at Noon.
func NewService() *Service {
	return &Service{Feed: newFeed(), now: Noon, states: map[string]lock.Record{}}
}

// Grant grants the lock at a time in the past.
func (fx *Service) Grant(a lock.Acquire, ago time.Duration) lock.Token {
	if d := fx.acquire(a, ago); d.Err != nil || d.Queued {
		panic(fmt.Sprintf("not granted: %v", d.Err))
	}
	return fx.Record(a.Locks[0].Name).Token
}

// Wait adds a waiter since a time in the past, for lock.MaxWait unless a says otherwise, and returns the command that
// disconnects it but keeps its place.
func (fx *Service) Wait(a lock.Acquire, ago time.Duration) (away lock.Leave) {
	a.Wait = cmp.Or(a.Wait, lock.MaxWait)
	if d := fx.acquire(a, ago); !d.Queued {
		panic("not queued")
	}
	return lock.Leave{Locks: a.Names(), LeaseID: CallID(fx.Calls), Attachment: lock.Attachment(fx.Calls), KeepPlace: true}
}

// CallID returns the lease_id of the nth acquire.
func CallID(n int) lock.LeaseID { return lock.LeaseID{byte(n >> 8), byte(n), 1} }

func (fx *Service) acquire(a lock.Acquire, ago time.Duration) lock.Decision {
	bounds, err := lock.Bounds{}.Resolve()
	if err == nil {
		holder := a.Holder // an older release may have allowed it
		a.Holder = "holder"
		a, err = a.Resolve(bounds)
		a.Holder = holder
	}
	if err != nil {
		panic(err)
	}
	fx.Calls++
	a.LeaseID, a.Attachment, a.Replica = CallID(fx.Calls), lock.Attachment(fx.Calls), self
	return fx.Apply(a, ago)
}

// Apply applies the command at a time in the past.
func (fx *Service) Apply(c lock.Command, ago time.Duration) lock.Decision {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	v := lock.View{Now: fx.now.Add(-ago), Self: self, Tokens: func() lock.Token {
		fx.LastToken++
		return fx.LastToken
	}}
	for _, name := range c.Names() {
		v.Locks = append(v.Locks, fx.Record(name))
	}
	d := c.Apply(v)
	for _, r := range d.Locks {
		fx.states[r.Name] = r
	}
	fx.Feed.Send(d.Events...)
	return d
}

// Pass advances the clock without an event.
func (fx *Service) Pass(d time.Duration) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.now = fx.now.Add(d)
}

// Free adds a free lock.
func (fx *Service) Free(name string) {
	token := fx.Grant(lock.Acquire{Locks: lock.One(name), Holder: "gone", TTL: time.Second}, time.Minute)
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.states[name] = lock.Record{Name: name, Token: token, Revision: 2, LastEnd: lock.Released}
}

// Forget removes the lock, and sends an event.
func (fx *Service) Forget(name string) {
	fx.mu.Lock()
	delete(fx.states, name)
	fx.mu.Unlock()
	fx.Feed.Send(lock.Event{At: Noon, Name: name, Kind: lock.Released, Mode: lock.Exclusive, Holder: "h", Token: 1})
}

// BreakDown makes every call fail with the error, nil: none.
func (fx *Service) BreakDown(err error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.fault = err
}

// Revocations returns the revocations so far.
func (fx *Service) Revocations() []lock.Revoke {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	return slices.Clone(fx.revoked)
}

// Lookups returns the number of calls of Locks.
func (fx *Service) Lookups() int {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	return fx.lists
}

// Record returns the record of the lock.
func (fx *Service) Record(name string) lock.Record {
	s := fx.states[name]
	s.Name = name
	return s
}

// Revoke applies the revocation and returns the lock.
func (fx *Service) Revoke(_ context.Context, c lock.Revoke) (lock.Lock, error) {
	c, err := c.Resolve()
	if err = cmp.Or(fx.broken(), err); err != nil {
		return lock.Lock{}, err
	}
	d := fx.Apply(c, 0)
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.revoked = append(fx.revoked, c)
	return d.Locks[0].Lock(fx.now), d.Err
}

func (fx *Service) broken() error {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	return fx.fault
}

// Queue returns the queue of the lock.
func (fx *Service) Queue(_ context.Context, name string) (lock.QueueInfo, error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if err := cmp.Or(fx.fault, lock.CheckName(name)); err != nil {
		return lock.QueueInfo{}, err
	}
	q := fx.Record(name).QueueInfo(lock.View{Now: fx.now, Self: self})
	locks := []lock.Record{fx.Record(name)}
	for _, other := range slices.Sorted(maps.Keys(fx.states)) {
		if other != name {
			locks = append(locks, fx.states[other])
		}
	}
	q.Chain = lock.WaitChainOf(locks, fx.now, self, true)
	return q, nil
}

// Lock returns the lock.
func (fx *Service) Lock(_ context.Context, name string) (lock.Lock, error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if err := cmp.Or(fx.fault, lock.CheckName(name)); err != nil {
		return lock.Lock{}, err
	}
	return fx.Record(name).Lock(fx.now), nil
}

// Trees returns none: a Service has no trees.
func (fx *Service) Trees(context.Context) ([]lock.Tree, error) { return nil, fx.broken() }

// Sessions returns none: a Service has no sessions.
func (fx *Service) Sessions(context.Context, paddock.SessionQuery) (paddock.Page[lock.SessionInfo], error) {
	return paddock.Page[lock.SessionInfo]{}, fx.broken()
}

// Locks returns a page of the locks.
func (fx *Service) Locks(_ context.Context, q paddock.LockQuery) (paddock.Page[lock.Lock], error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.lists++
	q, err := q.Resolve()
	if err = cmp.Or(fx.fault, err); err != nil {
		return paddock.Page[lock.Lock]{}, err
	}
	var p paddock.Page[lock.Lock]
	for _, s := range fx.states {
		if l := s.Lock(fx.now); l.Name > q.Cursor && q.Selects(l) {
			p.Items = append(p.Items, l)
		}
	}
	all := len(p.Items)
	q.Limit = cmp.Or(fx.PageSize, q.Limit)
	if p.Items = q.Top(p.Items); all > q.Limit && q.Sort == paddock.ByName {
		p.Next = p.Items[q.Limit-1].Name
	}
	return p, nil
}

// Events returns a page of the events that were sent, which the page reads from the newest on.
func (fx *Service) Events(_ context.Context, q paddock.EventQuery) (paddock.Page[lock.Event], error) {
	q, err := q.Resolve()
	if err = cmp.Or(fx.broken(), err); err != nil || !q.Descending {
		return paddock.Page[lock.Event]{}, cmp.Or(err, lock.Invalid("order", "must be desc"))
	}
	before, err := strconv.ParseInt(cmp.Or(q.Cursor, strconv.Itoa(math.MaxInt)), 10, 64)
	if err != nil {
		return paddock.Page[lock.Event]{}, lock.Invalid("cursor", "is invalid; pass next_cursor unchanged, or omit it to start over")
	}
	var p paddock.Page[lock.Event]
	for _, e := range slices.Backward(fx.Feed.Sent()) {
		if e.ID >= before || !q.Selects(&e) {
			continue
		}
		if len(p.Items) == q.Limit {
			p.Next = strconv.FormatInt(p.Items[len(p.Items)-1].ID, 10)
			break
		}
		p.Items = append(p.Items, e)
	}
	if !fx.SearchedTo.IsZero() {
		p.SearchedTo, p.Next = fx.SearchedTo, "1"
	}
	p.Gap, p.Unreadable = p.Next == "" && fx.Forgotten, fx.Broken
	return p, nil
}
