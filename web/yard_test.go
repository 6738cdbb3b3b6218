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

// noon is the instant that a yard's clock shows until it is told otherwise. It is
// far from today: nothing on the page may come from the wall clock.
var noon = time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC)

// self is the replica that a yard is: all who wait do so with it.
const self lock.Replica = 1

// A fixture is a lock service in memory, as much of one as the page asks for. The
// rules are the domain's own. What happens is told to its feed. Other calls panic.
type fixture struct {
	lock.Service
	feed    *feed
	mu      sync.Mutex
	now     time.Time
	states  map[string]lock.Record
	last    lock.Token
	calls   int   // that acquired or waited: each has a lease_id and an attachment by its number
	limit   int   // of a page; zero: the query's
	fault   error // what every call answers, if set
	lists   int   // how often the locks were listed
	revoked []lock.Revoke
}

func newFixture() *fixture {
	return &fixture{feed: newFeed(), now: noon, states: map[string]lock.Record{}}
}

// grant grants the lock as of ago before the yard's clock.
func (y *fixture) grant(a lock.Acquire, ago time.Duration) lock.Token {
	if d := y.acquire(a, ago); d.Err != nil || d.Queued {
		panic(fmt.Sprintf("not granted: %v", d.Err))
	}
	return y.state(a.Name).Token
}

// wait has a call wait for the lock since ago, and returns what makes it leave
// while its place is kept.
func (y *fixture) wait(a lock.Acquire, ago time.Duration) (away lock.Leave) {
	a.Wait = lock.MaxWait
	if d := y.acquire(a, ago); !d.Queued {
		panic("not queued")
	}
	return lock.Leave{Name: a.Name, LeaseID: callID(y.calls), Attachment: lock.Attachment(y.calls), KeepPlace: true}
}

func callID(n int) lock.LeaseID { return lock.LeaseID{byte(n >> 8), byte(n), 1} }

func (y *fixture) acquire(a lock.Acquire, ago time.Duration) lock.Decision {
	bounds, err := lock.Bounds{}.Resolve()
	if err == nil {
		holder := a.Holder // may be one that only an older release allowed
		a.Holder = "holder"
		a, err = a.Resolve(bounds)
		a.Holder = holder
	}
	if err != nil {
		panic(err)
	}
	y.calls++
	a.LeaseID, a.Attachment, a.Replica = callID(y.calls), lock.Attachment(y.calls), self
	return y.do(a, ago)
}

// do has the command decide as of ago before the yard's clock.
func (y *fixture) do(c lock.Command, ago time.Duration) lock.Decision {
	y.mu.Lock()
	defer y.mu.Unlock()
	d := c.Apply(lock.View{Now: y.now.Add(-ago), Self: self, Locks: []lock.Record{y.state(c.Names()[0])}, Tokens: func() lock.Token {
		y.last++
		return y.last
	}})
	y.states[d.Locks[0].Name] = d.Locks[0]
	y.feed.send(d.Events...)
	return d
}

// pass lets time pass, which nobody is told of.
func (y *fixture) pass(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

// free adds a lock that nobody holds.
func (y *fixture) free(name string) {
	token := y.grant(lock.Acquire{Name: name, Holder: "gone", TTL: time.Second}, time.Minute)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.states[name] = lock.Record{Name: name, Token: token, Revision: 2, LastEnd: lock.Released}
}

func (y *fixture) breakDown(err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.fault = err
}

func (y *fixture) revocations() []lock.Revoke {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.revoked)
}

// lookups returns how often the locks were listed.
func (y *fixture) lookups() int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.lists
}

func (y *fixture) state(name string) lock.Record {
	s := y.states[name]
	s.Name = name
	return s
}

func (y *fixture) Revoke(_ context.Context, c lock.Revoke) (lock.Lock, error) {
	c, err := c.Resolve()
	if err = cmp.Or(y.broken(), err); err != nil {
		return lock.Lock{}, err
	}
	d := y.do(c, 0)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.revoked = append(y.revoked, c)
	return d.Locks[0].Lock(y.now), d.Err
}

func (y *fixture) broken() error {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.fault
}

func (y *fixture) Queue(_ context.Context, name string) (lock.QueueInfo, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err := cmp.Or(y.fault, lock.CheckName(name)); err != nil {
		return lock.QueueInfo{}, err
	}
	return y.state(name).QueueInfo(y.now, self), nil
}

func (y *fixture) Lock(_ context.Context, name string) (lock.Lock, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err := cmp.Or(y.fault, lock.CheckName(name)); err != nil {
		return lock.Lock{}, err
	}
	return y.state(name).Lock(y.now), nil
}

func (y *fixture) Locks(_ context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.lists++
	q, err := q.Resolve()
	if err = cmp.Or(y.fault, err); err != nil {
		return lock.Page[lock.Lock]{}, err
	}
	var p lock.Page[lock.Lock]
	for _, s := range y.states {
		if l := s.Lock(y.now); matches(l, q) {
			p.Items = append(p.Items, l)
		}
	}
	slices.SortFunc(p.Items, func(a, b lock.Lock) int { return strings.Compare(a.Name, b.Name) })
	if n := cmp.Or(y.limit, q.Limit); len(p.Items) > n {
		p.Items = p.Items[:n]
		p.Next = p.Items[n-1].Name
	}
	return p, nil
}

func matches(l lock.Lock, q lock.LockQuery) bool {
	return l.Name > q.Cursor && strings.HasPrefix(l.Name, q.Prefix) && (q.State == "" || l.State == q.State) &&
		(q.Holder == "" || slices.ContainsFunc(l.Leases, func(h lock.LeaseInfo) bool { return h.Holder == q.Holder }))
}
