package web_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// noon is the instant that a yard's clock shows until it is told otherwise. It is
// far from today: nothing on the page may come from the wall clock.
var noon = time.Date(2031, 5, 4, 12, 0, 0, 0, time.UTC)

// A yard is a lock service in memory, as much of one as the page asks for. The
// rules are the domain's own. Other calls panic.
type yard struct {
	lock.Service
	mu      sync.Mutex
	now     time.Time
	states  map[string]lock.State
	last    lock.Token
	limit   int   // of a page; zero: the query's
	fault   error // what every call answers, if set
	revoked []lock.Revoke
}

func newYard() *yard { return &yard{now: noon, states: map[string]lock.State{}} }

// grant grants the lock as of ago before the yard's clock.
func (y *yard) grant(a lock.Acquire, ago time.Duration) lock.Token {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.last++
	a.LeaseID = lock.LeaseID{byte(y.last >> 8), byte(y.last), 1}
	a.Mode = lock.Exclusive
	d := a.Apply(lock.View{Now: y.now.Add(-ago), Locks: []lock.State{y.state(a.Name)}, Tokens: func() lock.Token { return y.last }})
	if d.Err != nil {
		panic(d.Err)
	}
	y.states[a.Name] = d.Locks[0]
	return y.last
}

// free adds a lock that nobody holds.
func (y *yard) free(name string) {
	token := y.grant(lock.Acquire{Name: name, Holder: "gone", TTL: time.Second}, time.Minute)
	y.mu.Lock()
	defer y.mu.Unlock()
	y.states[name] = lock.State{Name: name, Token: token, Revision: 2, End: lock.Released}
}

func (y *yard) breakDown(err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.fault = err
}

func (y *yard) revocations() []lock.Revoke {
	y.mu.Lock()
	defer y.mu.Unlock()
	return slices.Clone(y.revoked)
}

func (y *yard) state(name string) lock.State {
	s := y.states[name]
	s.Name = name
	return s
}

func (y *yard) Revoke(_ context.Context, c lock.Revoke) (lock.Lock, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	c, err := c.Resolve()
	if err = cmp.Or(y.fault, err); err != nil {
		return lock.Lock{}, err
	}
	y.revoked = append(y.revoked, c)
	d := c.Apply(lock.View{Now: y.now, Locks: []lock.State{y.state(c.Name)}})
	y.states[c.Name] = d.Locks[0]
	return d.Locks[0].Lock(y.now), d.Err
}

func (y *yard) Lock(_ context.Context, name string) (lock.Lock, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if err := cmp.Or(y.fault, lock.CheckName(name)); err != nil {
		return lock.Lock{}, err
	}
	return y.state(name).Lock(y.now), nil
}

func (y *yard) Locks(_ context.Context, q lock.LockQuery) (lock.Page[lock.Lock], error) {
	y.mu.Lock()
	defer y.mu.Unlock()
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
	return l.Name > q.Cursor && strings.HasPrefix(l.Name, q.Prefix) && (q.Phase == "" || l.Phase == q.Phase) &&
		(q.Holder == "" || len(l.Leases) > 0 && l.Leases[0].Holder == q.Holder)
}

// hostile is a holder that tries everything: markup, closing what surrounds it,
// and characters that turn the direction of writing.
const hostile = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'\u2069\u202egnorw"

// busy returns a yard with a lock of each kind.
func busy() *yard {
	y := newYard()
	y.grant(lock.Acquire{Name: "billing:invoice-run", Holder: "worker-7 on db-3", TTL: 30 * time.Second}, 8*time.Second)
	y.grant(lock.Acquire{Name: "billing:month-end", Holder: "ops: Ada, by hand", TTL: 24 * time.Hour,
		Metadata: json.RawMessage(`{"ticket":"OPS-4711","host":"bastion-1","note":"<b>do not revoke</b> before the books are closed"}`)}, 3*time.Hour)
	y.grant(lock.Acquire{Name: "cron:reindex", Holder: "cron-2", TTL: 20 * time.Second, Grace: 10 * time.Second}, 24*time.Second)
	y.grant(lock.Acquire{Name: "deploy:production", Holder: "pipeline 1881", TTL: 10 * time.Minute, Grace: 2 * time.Second}, 95*time.Second)
	y.free("deploy:staging")
	y.grant(lock.Acquire{Name: "hostile", Holder: hostile, TTL: time.Hour,
		Metadata: json.RawMessage(`{"x":"</pre><script>alert(3)</script>\u202e"}`)}, time.Minute)
	y.free("leader:scheduler")
	return y
}
