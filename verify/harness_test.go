package verify_test

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/testmain"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func TestMain(m *testing.M) { os.Exit(testmain.M{M: m}.Run()) }

// The locks of the recorded history, and the key that is written under the first.
const (
	exclusiveLock = "play:alone"
	sharedLock    = "play:rooms"
	permitLock    = "play:permits"
	sessionLock   = "play:session"
	setLock       = "play:set" // acquired together with another one, the next
	otherSetLock  = "play:together"
	fencedKey     = "play:account"
)

// A harness lets named holders use a service in memory one after the other, some time apart.
type harness struct {
	t      *testing.T
	memory *memlock.Memory
	rec    *verify.Recorder
	poller *verify.Subscriber
	cursor string // of the poller

	mu     sync.Mutex                 // guards the maps, all by holder
	as     map[string]paddock.Service // recorded clients
	ids    map[string]lock.LeaseID
	grants map[string]lock.Grant
}

func newHarness(t *testing.T) *harness {
	c := &harness{
		t: t, memory: memlock.New(), rec: verify.NewRecorder(), as: map[string]paddock.Service{},
		ids: map[string]lock.LeaseID{}, grants: map[string]lock.Grant{}, cursor: paddock.CursorNow,
	}
	c.poller = c.rec.Subscribe(verify.Polling, "play:")
	return c
}

// via is the name of the replica.
const via = "the only replica"

// poll reads the events since the poller's last page.
func (c *harness) poll() {
	c.t.Helper()
	c.poller.Requested(via, c.cursor)
	page, err := c.memory.Replica(1).Events(c.t.Context(), paddock.EventQuery{Prefix: "play:", Cursor: c.cursor})
	c.want(nil, err)
	c.poller.Received(page)
	c.poller.Ended(nil)
	c.cursor = page.Next
}

// watchWhile starts a blocking read of the lock, runs meanwhile, and waits until the read returns.
func (c *harness) watchWhile(name string, meanwhile func()) {
	c.t.Helper()
	seen := c.read(name).Version()
	watcher := c.client("a watcher")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := watcher.Watch(c.t.Context(), paddock.Watch{Name: name, Seen: seen, Wait: 20 * time.Second})
		c.want(nil, err)
	}()
	time.Sleep(150 * time.Millisecond)
	meanwhile()
	<-done
}

// client returns the service as used by the holder.
func (c *harness) client(holder string) paddock.Service {
	c.t.Helper()
	time.Sleep(100 * time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.as[holder] == nil {
		c.as[holder] = c.rec.Client(via, c.memory.Replica(1))
		c.ids[holder] = lock.LeaseID(uuid.New())
	}
	return c.as[holder]
}

// id returns the lease ID that the holder uses, after its first call of client.
func (c *harness) id(holder string) lock.LeaseID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[holder]
}

// grant returns what the holder was granted last.
func (c *harness) grant(holder string) lock.Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.grants[holder]
}

func (c *harness) note(holder string, g lock.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grants[holder] = g
}

// want ends the test unless err has the code; nil means no error.
func (c *harness) want(code error, err error) {
	c.t.Helper()
	if !errors.Is(err, code) {
		c.t.Fatalf("answered %v, want %v", err, code)
	}
}

// acquire acquires a lock for the holder, for ten seconds unless a says otherwise.
func (c *harness) acquire(holder string, code error, a lock.Acquire) {
	c.t.Helper()
	s := c.client(holder)
	a.Holder, a.LeaseID = holder, c.id(holder)
	if a.TTL == 0 && a.SessionID == (lock.SessionID{}) {
		a.TTL = 10 * time.Second
	}
	g, err := s.Acquire(c.t.Context(), a)
	c.want(code, err)
	if err == nil {
		c.note(holder, g)
	}
}

// renew renews the lease of the lock, or those of the set.
func (c *harness) renew(holder string, code error, set ...string) {
	c.t.Helper()
	if set == nil {
		set = []string{c.grant(holder).Name}
	}
	_, err := c.client(holder).Renew(c.t.Context(), lock.Renew{Locks: set, LeaseID: c.id(holder)})
	c.want(code, err)
}

func (c *harness) release(holder string) {
	c.t.Helper()
	c.want(nil, c.client(holder).Release(c.t.Context(),
		lock.Release{Locks: []string{c.grant(holder).Name}, LeaseID: c.id(holder)}))
}

func (c *harness) read(name string) lock.Lock {
	c.t.Helper()
	l, err := c.client("a reader").Lock(c.t.Context(), name)
	c.want(nil, err)
	return l
}

func (c *harness) write(holder string, code error, version *int64) {
	c.t.Helper()
	_, err := c.client(holder).WriteFenced(c.t.Context(), lock.FencedWrite{
		Key: fencedKey, Lock: exclusiveLock, Token: c.grant(holder).Token,
		Value: json.RawMessage(`{"by":"` + holder + `"}`), IfVersion: version,
	})
	c.want(code, err)
}

// writeOnce writes the operation that all holders share.
func (c *harness) writeOnce(holder string) {
	c.t.Helper()
	_, err := c.client(holder).WriteFenced(c.t.Context(), lock.FencedWrite{
		Key: fencedKey, Lock: exclusiveLock, Token: c.grant(holder).Token,
		Value: json.RawMessage(`{"by":"` + holder + `","once":true}`), OperationID: "o",
	})
	c.want(nil, err)
}

func (c *harness) readFenced() {
	c.t.Helper()
	_, err := c.client("a reader").ReadFenced(c.t.Context(), fencedKey)
	c.want(nil, err)
}

func (c *harness) verify(holder string) {
	c.t.Helper()
	g := c.grant(holder)
	_, err := c.client("a reader").VerifyToken(c.t.Context(), lock.Verify{Name: g.Name, Token: g.Token})
	c.want(nil, err)
}

func (c *harness) revoke(holder string) {
	c.t.Helper()
	g := c.grant(holder)
	_, err := c.client("the operator").Revoke(c.t.Context(),
		lock.Revoke{Name: g.Name, Token: g.Token, Reason: "no reason"})
	c.want(nil, err)
}

// waitWhile lets the holder wait for a lock while meanwhile runs.
func (c *harness) waitWhile(holder string, a lock.Acquire, meanwhile func()) {
	c.t.Helper()
	a.Wait = 20 * time.Second
	c.client(holder)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.acquire(holder, nil, a)
	}()
	time.Sleep(150 * time.Millisecond)
	meanwhile()
	<-done
}

// recordCorrect records a history of correct answers that covers all that can happen to locks.
func recordCorrect(t *testing.T) verify.History {
	t.Helper()
	var h verify.History
	synctest.Test(t, func(t *testing.T) {
		c := newHarness(t)
		c.useExclusiveLock()
		c.useSharedLocks()
		c.useSets()
		c.useSession()
		c.useTasks()
		c.useTree()
		c.usePolicy()
		c.useClosings()
		time.Sleep(time.Minute)
		h = c.rec.History()
		var err error
		h.Events, err = verify.Collect(t.Context(), c.memory.Replica(1), "play:")
		c.want(nil, err)
	})
	return h
}

func (c *harness) useExclusiveLock() {
	c.poll()
	c.acquire("ann", nil, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.poll()
	c.renew("ann", nil)
	c.read(exclusiveLock)
	c.acquire("bob", lock.ErrHeld, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.write("ann", nil, nil)
	c.write("ann", nil, new(int64(1)))
	c.write("ann", nil, new(int64(1)))
	c.readFenced()
	c.release("ann")
	c.poll()
	c.acquire("bob", nil, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.write("bob", nil, nil)
	c.readFenced()
	c.write("ann", lock.ErrStaleToken, nil)
	c.verify("bob")
	c.writeOnce("bob")
	c.writeOnce("bob")
	c.acquire("bob", nil, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.release("bob")
	c.poll()
	c.acquire("cleo", nil, lock.Acquire{Locks: lock.One(exclusiveLock), TTL: time.Second})
	c.read(exclusiveLock)
	time.Sleep(2 * time.Second)
	c.renew("cleo", lock.ErrLeaseLost)
	c.read(exclusiveLock)
	c.acquire("dan", nil, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.revoke("dan")
	c.renew("dan", lock.ErrLeaseLost)
	c.acquire("eve", nil, lock.Acquire{Locks: lock.One(exclusiveLock)})
	c.writeOnce("eve")
	c.waitWhile("fay", lock.Acquire{Locks: lock.One(exclusiveLock)}, func() { c.release("eve") })
	c.verify("fay")
	c.watchWhile(exclusiveLock, func() { c.release("fay") })
	c.poll()
}

func (c *harness) useSharedLocks() {
	c.acquire("reader 1", nil, lock.Acquire{Locks: []lock.Member{{Name: sharedLock, Mode: lock.Shared}}})
	c.acquire("reader 2", nil, lock.Acquire{Locks: []lock.Member{{Name: sharedLock, Mode: lock.Shared}}})
	c.waitWhile("writer", lock.Acquire{Locks: lock.One(sharedLock)}, func() {
		c.release("reader 1")
		c.read(sharedLock)
		c.release("reader 2")
	})
	c.read(sharedLock)
	c.release("writer")
	two := lock.Acquire{Locks: []lock.Member{{Name: permitLock, Mode: lock.Permit, Capacity: 2}}}
	c.acquire("first", nil, two)
	c.acquire("second", nil, two)
	c.acquire("third", lock.ErrHeld, two)
	c.read(permitLock)
	c.release("first")
	c.acquire("third", nil, two)
	c.release("second")
	c.release("third")
	c.poll()
}

// An editable is a History that a test changes.
type editable struct {
	t *testing.T
	*verify.History
}

// copyOf returns a History that can be changed without changing h.
func copyOf(h verify.History) verify.History {
	h.Calls, h.Faults, h.Events = slices.Clone(h.Calls), slices.Clone(h.Faults), slices.Clone(h.Events)
	return h
}

// call returns the holder's nth call, from 0, with that verb.
func (s editable) call(verb verify.Verb, holder string, nth int) *verify.Call {
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
			mine = strings.HasPrefix(string(a.Value), `{"by":"`+holder+`"`)
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
	s.t.Fatalf("no %s of %q was recorded", verb, holder)
	return nil
}

// grant changes the grant in the holder's nth answer with that verb.
func (s editable) grant(verb verify.Verb, holder string, nth int, change func(*lock.Grant)) {
	s.t.Helper()
	c := s.call(verb, holder, nth)
	g := c.Response.(lock.Grant)
	change(&g)
	c.Response = g
}

// event returns the first event of that kind about the holder.
func (s editable) event(kind lock.Kind, holder string) *lock.Event {
	s.t.Helper()
	i := slices.IndexFunc(s.Events, func(e lock.Event) bool { return e.Kind == kind && e.Holder == holder })
	if i < 0 {
		s.t.Fatalf("no such event of %q was recorded", holder)
	}
	return &s.Events[i]
}

// removeEvents removes events and renumbers the later ones.
func (s editable) removeEvents(these func(lock.Event) bool) {
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

// refuse replaces the answer of a call with a refusal.
func refuse(c *verify.Call, e lock.Error) {
	e.Detail, c.Response, c.Err = "Changed by the test.", nil, &e
}
