package web_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// noon is the initial time of a fixture's clock. It is far from today, to detect uses of the wall clock.
var noon = time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC)

// self is the replica of a fixture, where all calls wait.
const self lock.Replica = 1

// A fixture is a minimal lock.Service in memory, with the rules of package lock. It sends events to its feed. Methods that
// the page does not call panic.
type fixture struct {
	lock.Service
	feed    *feed
	mu      sync.Mutex
	now     time.Time
	states  map[string]lock.Record
	last    lock.Token
	calls   int   // of acquire; the number of a call is its lease_id and attachment
	limit   int   // of a page; zero: the query's
	fault   error // of every call; nil: none
	lists   int   // calls of Locks
	revoked []lock.Revoke
}

func newFixture() *fixture {
	return &fixture{feed: newFeed(), now: noon, states: map[string]lock.Record{}}
}

// grant grants the lock at a time in the past.
func (fx *fixture) grant(a lock.Acquire, ago time.Duration) lock.Token {
	if d := fx.acquire(a, ago); d.Err != nil || d.Queued {
		panic(fmt.Sprintf("not granted: %v", d.Err))
	}
	return fx.state(a.Name).Token
}

// wait adds a waiter since a time in the past, and returns the command that disconnects it but keeps its place.
func (fx *fixture) wait(a lock.Acquire, ago time.Duration) (away lock.Leave) {
	a.Wait = lock.MaxWait
	if d := fx.acquire(a, ago); !d.Queued {
		panic("not queued")
	}
	return lock.Leave{Name: a.Name, LeaseID: callID(fx.calls), Attachment: lock.Attachment(fx.calls), KeepPlace: true}
}

func callID(n int) lock.LeaseID { return lock.LeaseID{byte(n >> 8), byte(n), 1} }

func (fx *fixture) acquire(a lock.Acquire, ago time.Duration) lock.Decision {
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
	fx.calls++
	a.LeaseID, a.Attachment, a.Replica = callID(fx.calls), lock.Attachment(fx.calls), self
	return fx.do(a, ago)
}

// do applies the command at a time in the past.
func (fx *fixture) do(c lock.Command, ago time.Duration) lock.Decision {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	d := c.Apply(lock.View{Now: fx.now.Add(-ago), Self: self, Locks: []lock.Record{fx.state(c.Names()[0])}, Tokens: func() lock.Token {
		fx.last++
		return fx.last
	}})
	fx.states[d.Locks[0].Name] = d.Locks[0]
	fx.feed.send(d.Events...)
	return d
}

// pass advances the clock without an event.
func (fx *fixture) pass(d time.Duration) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.now = fx.now.Add(d)
}

// free adds a free lock.
func (fx *fixture) free(name string) {
	token := fx.grant(lock.Acquire{Name: name, Holder: "gone", TTL: time.Second}, time.Minute)
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.states[name] = lock.Record{Name: name, Token: token, Revision: 2, LastEnd: lock.Released}
}

func (fx *fixture) breakDown(err error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.fault = err
}

func (fx *fixture) revocations() []lock.Revoke {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	return slices.Clone(fx.revoked)
}

// lookups returns the number of calls of Locks.
func (fx *fixture) lookups() int {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	return fx.lists
}

func (fx *fixture) state(name string) lock.Record {
	s := fx.states[name]
	s.Name = name
	return s
}

func (fx *fixture) Revoke(_ context.Context, c lock.Revoke) (lock.Lock, error) {
	c, err := c.Resolve()
	if err = cmp.Or(fx.broken(), err); err != nil {
		return lock.Lock{}, err
	}
	d := fx.do(c, 0)
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.revoked = append(fx.revoked, c)
	return d.Locks[0].Lock(fx.now), d.Err
}

func (fx *fixture) broken() error {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	return fx.fault
}

func (fx *fixture) Queue(_ context.Context, name string) (lock.QueueInfo, error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if err := cmp.Or(fx.fault, lock.CheckName(name)); err != nil {
		return lock.QueueInfo{}, err
	}
	return fx.state(name).QueueInfo(fx.now, self), nil
}

func (fx *fixture) Lock(_ context.Context, name string) (lock.Lock, error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	if err := cmp.Or(fx.fault, lock.CheckName(name)); err != nil {
		return lock.Lock{}, err
	}
	return fx.state(name).Lock(fx.now), nil
}

func (fx *fixture) Locks(_ context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	fx.mu.Lock()
	defer fx.mu.Unlock()
	fx.lists++
	q, err := q.Resolve()
	if err = cmp.Or(fx.fault, err); err != nil {
		return lock.Page[lock.Lock]{}, err
	}
	var p lock.Page[lock.Lock]
	for _, s := range fx.states {
		if l := s.Lock(fx.now); matches(l, q) {
			p.Items = append(p.Items, l)
		}
	}
	slices.SortFunc(p.Items, func(a, b lock.Lock) int { return strings.Compare(a.Name, b.Name) })
	if n := cmp.Or(fx.limit, q.Limit); len(p.Items) > n {
		p.Items = p.Items[:n]
		p.Next = p.Items[n-1].Name
	}
	return p, nil
}

func matches(l lock.Lock, q lock.LockQuery) bool {
	return l.Name > q.Cursor && strings.HasPrefix(l.Name, q.Prefix) && (q.State == "" || l.State == q.State) &&
		(q.Holder == "" || slices.ContainsFunc(l.Leases, func(h lock.LeaseInfo) bool { return h.Holder == q.Holder }))
}
