package verify_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// The locks of the play, and what is written under the first.
const (
	alone   = "play:alone"
	rooms   = "play:rooms"
	permits = "play:permits"
	account = "play:account"
)

// A cast are people who use a service one after the other, a while apart.
type cast struct {
	t      *testing.T
	memory *memlock.Memory
	rec    *verify.Recorder
	as     map[string]lock.Service // each through a replica of its own
	ids    map[string]lock.LeaseID
	grants map[string]lock.Grant
	poller *verify.Subscriber
	cursor string // of the poller
}

func newCast(t *testing.T) *cast {
	c := &cast{
		t: t, memory: memlock.New(), rec: verify.NewRecorder(), as: map[string]lock.Service{},
		ids: map[string]lock.LeaseID{}, grants: map[string]lock.Grant{}, cursor: lock.CursorNow,
	}
	c.poller = c.rec.Subscribe(verify.Polling, "play:")
	return c
}

// via is what the replica is called.
const via = "the only replica"

// polls reads the events since the poller's last page.
func (c *cast) polls() {
	c.t.Helper()
	c.poller.Requested(via, c.cursor)
	page, err := c.memory.Replica(1).Events(c.t.Context(), lock.EventQuery{Prefix: "play:", Cursor: c.cursor})
	c.want(nil, err)
	c.poller.Received(page)
	c.poller.Ended(nil)
	c.cursor = page.Next
}

// watches starts a blocking read of the lock, runs meanwhile, and waits for the read to return.
func (c *cast) watches(name string, meanwhile func()) {
	c.t.Helper()
	seen := c.looks(name).Version()
	watcher := c.who("a watcher")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := watcher.Watch(c.t.Context(), lock.Watch{Name: name, Seen: seen, Wait: 20 * time.Second})
		c.want(nil, err)
	}()
	time.Sleep(150 * time.Millisecond)
	meanwhile()
	<-done
}

// who returns the service as somebody uses it.
func (c *cast) who(holder string) lock.Service {
	c.t.Helper()
	time.Sleep(100 * time.Millisecond)
	if c.as[holder] == nil {
		c.as[holder] = c.rec.Client(via, c.memory.Replica(1))
		c.ids[holder] = lock.LeaseID(uuid.New())
	}
	return c.as[holder]
}

// want ends the test unless err is the code; nil for none.
func (c *cast) want(code error, err error) {
	c.t.Helper()
	if !errors.Is(err, code) {
		c.t.Fatalf("answered %v, want %v", err, code)
	}
}

// acquires has somebody acquire a lock, for ten seconds unless a says otherwise.
func (c *cast) acquires(holder string, code error, a lock.Acquire) {
	c.t.Helper()
	s := c.who(holder)
	a.Holder, a.LeaseID = holder, c.ids[holder]
	if a.TTL == 0 {
		a.TTL = 10 * time.Second
	}
	g, err := s.Acquire(c.t.Context(), a)
	c.want(code, err)
	if err == nil {
		c.grants[holder] = g
	}
}

func (c *cast) renews(holder string, code error) {
	c.t.Helper()
	_, err := c.who(holder).Renew(c.t.Context(), lock.Renew{Name: c.grants[holder].Name, LeaseID: c.ids[holder]})
	c.want(code, err)
}

func (c *cast) releases(holder string) {
	c.t.Helper()
	c.want(nil, c.who(holder).Release(c.t.Context(), lock.Release{Name: c.grants[holder].Name, LeaseID: c.ids[holder]}))
}

func (c *cast) looks(name string) lock.Lock {
	c.t.Helper()
	l, err := c.who("a passer-by").Lock(c.t.Context(), name)
	c.want(nil, err)
	return l
}

func (c *cast) writes(holder string, code error, version *int64) {
	c.t.Helper()
	_, err := c.who(holder).WriteFenced(c.t.Context(), lock.FencedWrite{
		Key: account, Lock: alone, Token: c.grants[holder].Token, Value: json.RawMessage(`{"by":"` + holder + `"}`), IfVersion: version,
	})
	c.want(code, err)
}

func (c *cast) reads() {
	c.t.Helper()
	_, err := c.who("a passer-by").ReadFenced(c.t.Context(), account)
	c.want(nil, err)
}

func (c *cast) verifies(holder string) {
	c.t.Helper()
	g := c.grants[holder]
	_, err := c.who("a passer-by").VerifyToken(c.t.Context(), lock.Verify{Name: g.Name, Token: g.Token})
	c.want(nil, err)
}

func (c *cast) revokes(holder string) {
	c.t.Helper()
	g := c.grants[holder]
	_, err := c.who("the operator").Revoke(c.t.Context(), lock.Revoke{Name: g.Name, Token: g.Token, Reason: "no reason"})
	c.want(nil, err)
}

// waits has somebody wait for a lock while the others do something.
func (c *cast) waits(holder string, a lock.Acquire, meanwhile func()) {
	c.t.Helper()
	a.Wait = 20 * time.Second
	c.who(holder)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.acquires(holder, nil, a)
	}()
	time.Sleep(150 * time.Millisecond)
	meanwhile()
	<-done
}

// play has the cast play all that can happen to locks, and returns what was recorded.
func play(t *testing.T) verify.History {
	t.Helper()
	var h verify.History
	synctest.Test(t, func(t *testing.T) {
		c := newCast(t)
		c.playAlone()
		c.playTogether()
		time.Sleep(time.Minute)
		h = c.rec.History()
		var err error
		h.Events, err = verify.Collect(t.Context(), c.memory.Replica(1), "play:")
		c.want(nil, err)
	})
	return h
}

func (c *cast) playAlone() {
	c.polls()
	c.acquires("ann", nil, lock.Acquire{Name: alone})
	c.polls()
	c.renews("ann", nil)
	c.looks(alone)
	c.acquires("bob", lock.ErrHeld, lock.Acquire{Name: alone})
	c.writes("ann", nil, nil)
	c.writes("ann", nil, new(int64(1)))
	c.writes("ann", nil, new(int64(1)))
	c.reads()
	c.releases("ann")
	c.polls()
	c.acquires("bob", nil, lock.Acquire{Name: alone})
	c.writes("bob", nil, nil)
	c.reads()
	c.writes("ann", lock.ErrStaleToken, nil)
	c.verifies("bob")
	c.acquires("bob", nil, lock.Acquire{Name: alone})
	c.releases("bob")
	c.polls()
	c.acquires("cleo", nil, lock.Acquire{Name: alone, TTL: time.Second})
	c.looks(alone)
	time.Sleep(2 * time.Second)
	c.renews("cleo", lock.ErrLeaseLost)
	c.looks(alone)
	c.acquires("dan", nil, lock.Acquire{Name: alone})
	c.revokes("dan")
	c.renews("dan", lock.ErrLeaseLost)
	c.acquires("eve", nil, lock.Acquire{Name: alone})
	c.waits("fay", lock.Acquire{Name: alone}, func() { c.releases("eve") })
	c.verifies("fay")
	c.watches(alone, func() { c.releases("fay") })
	c.polls()
}

func (c *cast) playTogether() {
	c.acquires("reader 1", nil, lock.Acquire{Name: rooms, Mode: lock.Shared})
	c.acquires("reader 2", nil, lock.Acquire{Name: rooms, Mode: lock.Shared})
	c.waits("writer", lock.Acquire{Name: rooms}, func() {
		c.releases("reader 1")
		c.looks(rooms)
		c.releases("reader 2")
	})
	c.looks(rooms)
	c.releases("writer")
	two := lock.Acquire{Name: permits, Mode: lock.Permit, Capacity: 2}
	c.acquires("first", nil, two)
	c.acquires("second", nil, two)
	c.acquires("third", lock.ErrHeld, two)
	c.looks(permits)
	c.releases("first")
	c.acquires("third", nil, two)
	c.releases("second")
	c.releases("third")
	c.polls()
}

// The calls and events of a History, to be spoilt.
type script struct {
	t *testing.T
	*verify.History
}

// copyOf returns a History that can be changed without changing h.
func copyOf(h verify.History) verify.History {
	h.Calls, h.Faults, h.Events = slices.Clone(h.Calls), slices.Clone(h.Faults), slices.Clone(h.Events)
	return h
}

// call returns the nth call, from 0, that somebody made with a verb.
func (s script) call(verb verify.Verb, holder string, nth int) *verify.Call {
	s.t.Helper()
	ids := map[lock.LeaseID]bool{}
	for _, c := range s.Calls {
		if a, ok := c.Request.(lock.Acquire); ok && a.Holder == holder {
			ids[a.LeaseID] = true
		}
	}
	for i := range s.Calls {
		c, mine := &s.Calls[i], false
		switch a := c.Request.(type) {
		case lock.Acquire:
			mine = ids[a.LeaseID]
		case lock.Renew:
			mine = ids[a.LeaseID]
		case lock.Release:
			mine = ids[a.LeaseID]
		case lock.FencedWrite:
			mine = string(a.Value) == `{"by":"`+holder+`"}`
		default:
			mine = holder == ""
		}
		if c.Verb == verb && mine {
			if nth == 0 {
				return c
			}
			nth--
		}
	}
	s.t.Fatalf("there is no such %s of %q", verb, holder)
	return nil
}

// grant changes the grant with which the nth acquire, or renewal, was answered.
func (s script) grant(verb verify.Verb, holder string, nth int, change func(*lock.Grant)) {
	s.t.Helper()
	c := s.call(verb, holder, nth)
	g := c.Response.(lock.Grant)
	change(&g)
	c.Response = g
}

// event returns the event of a kind about somebody.
func (s script) event(kind lock.Kind, holder string) *lock.Event {
	s.t.Helper()
	i := slices.IndexFunc(s.Events, func(e lock.Event) bool { return e.Kind == kind && e.Holder == holder })
	if i < 0 {
		s.t.Fatalf("there is no such event of %q", holder)
	}
	return &s.Events[i]
}

// forget drops events, and renumbers what comes after, as if they had never been.
func (s script) forget(these func(lock.Event) bool) {
	gone := map[string]int64{}
	var left []lock.Event
	for _, e := range s.Events {
		if these(e) {
			gone[e.Name]++
			continue
		}
		e.Revision -= gone[e.Name]
		if e.Place != 0 {
			e.Place -= gone[e.Name]
		}
		left = append(left, e)
	}
	s.Events = left
}

// refuses has a call be answered with a refusal.
func refuses(c *verify.Call, e lock.Error) {
	e.Detail, c.Response, c.Err = "Spoilt.", nil, &e
}
