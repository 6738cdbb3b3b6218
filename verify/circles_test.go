package verify_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// unbrokenFor is how long the calls of an unbroken circle wait in these tests.
const unbrokenFor = 10 * time.Second

// A waiting is a call that waits in a circle.
type waiting struct {
	holder, name string
	mode         lock.Mode
	task         lock.TaskID
}

// A circleScene is leases, and calls that then wait until their time is over.
type circleScene struct {
	leases, waits []waiting
}

var twoTasks = circleScene{
	leases: []waiting{{"ann", leftLock, lock.Exclusive, "a"}, {"bea", rightLock, lock.Exclusive, "b"}},
	waits:  []waiting{{"ann again", rightLock, lock.Exclusive, "a.1"}, {"bea again", leftLock, lock.Exclusive, "b.1"}},
}

// record records the scene with calls of no task, so that the service does not break the circle, and adds the tasks.
func (s circleScene) record(t *testing.T, wait time.Duration) (h verify.History) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newHarness(t)
		for _, l := range s.leases {
			c.acquire(l.holder, nil, lock.Acquire{Locks: []lock.Member{{Name: l.name, Mode: l.mode}}, TTL: time.Minute})
		}
		var all sync.WaitGroup
		for i, w := range s.waits {
			c.client(w.holder)
			longer := time.Duration(len(s.waits)-1-i) * time.Second // what is behind another call is not granted its lock
			all.Go(func() {
				c.acquire(w.holder, lock.ErrHeld, lock.Acquire{Locks: []lock.Member{{Name: w.name, Mode: w.mode}}, Wait: wait + longer})
			})
			time.Sleep(150 * time.Millisecond) // they join in this order
		}
		for range (wait + 2*time.Second) / (100 * time.Millisecond) { // the service answers meanwhile
			c.read("play:other")
		}
		all.Wait()
		for _, l := range s.leases {
			c.release(l.holder)
		}
		h = c.rec.History()
		var err error
		h.Events, err = verify.Collect(t.Context(), c.memory.Replica(1), "play:")
		c.want(nil, err)
	})
	e := editable{t, &h}
	for _, all := range [][]waiting{s.leases, s.waits} {
		for _, one := range all {
			e.request(one.holder, func(a *lock.Acquire) { a.Task = one.task })
		}
	}
	return h
}

// circlesIn returns the messages of the circles that were not broken.
func circlesIn(h verify.History) (messages []string) {
	for _, c := range h.Check(verify.CheckOptions{}).Checks {
		if c.Name == byCircles {
			for _, v := range c.Violations {
				messages = append(messages, v.Message)
			}
		}
	}
	return messages
}

// TestCirclesThatLastAreFound, whatever they consist of, once each.
func TestCirclesThatLastAreFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		circleScene
		want string
	}{
		"two tasks": {twoTasks, `A circle of 2 waiting calls was not broken in 10s of undisturbed time: ` +
			`"ann again" waited for play:right, held by "bea"; "bea again" waited for play:left, held by "ann".`},
		"three tasks": {circleScene{
			[]waiting{{"ann", leftLock, lock.Exclusive, "a"}, {"bea", rightLock, lock.Exclusive, "b"}, {"cyd", "play:third", lock.Exclusive, "c"}},
			[]waiting{{"ann again", rightLock, lock.Exclusive, "a"}, {"bea again", "play:third", lock.Exclusive, "b"}, {"cyd again", leftLock, lock.Exclusive, "c.1.2"}},
		}, "A circle of 3 waiting calls"},
		"readers": {circleScene{
			[]waiting{{"ann", leftLock, lock.Shared, "a"}, {"bea", rightLock, lock.Shared, "b"}}, twoTasks.waits,
		}, "A circle of 2 waiting calls"},
		"a task that waits for itself": {circleScene{twoTasks.leases[:1], []waiting{{"ann again", leftLock, lock.Exclusive, "a.1"}}},
			`A circle of 1 waiting calls`},
		"behind a writer without a task": {circleScene{
			[]waiting{{"ann", leftLock, lock.Shared, "a"}},
			[]waiting{{"bea", leftLock, lock.Exclusive, ""}, {"ann again", leftLock, lock.Shared, "a.1"}},
		}, `"ann again" waited for play:left behind "bea"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := circlesIn(c.record(t, unbrokenFor))
			if len(found) != 1 || !strings.Contains(found[0], c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

// TestOnlyCertainCirclesAreFound: of a circle that lasts, one thing is changed.
func TestOnlyCertainCirclesAreFound(t *testing.T) {
	t.Parallel()
	base := twoTasks.record(t, unbrokenFor)
	for name, change := range map[string]func(editable){
		"a lease without a task": func(s editable) { s.request("ann", func(a *lock.Acquire) { a.Task = "" }) },
		"a wait without a task":  func(s editable) { s.request("ann again", func(a *lock.Acquire) { a.Task = "" }) },
		"a wait of another task": func(s editable) { s.request("ann again", func(a *lock.Acquire) { a.Task = "a1" }) },
		"a wait that was not answered": func(s editable) {
			s.call(verify.Acquire, "bea again", 0).Err = &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "The replica died."}
		},
		"a wait that was cancelled": func(s editable) { s.call(verify.Acquire, "bea again", 0).Cancelled = true },
		"a wait that keeps its place": func(s editable) {
			s.request("bea again", func(a *lock.Acquire) { a.KeepPlace = true })
		},
		"a wait that was sent twice": func(s editable) {
			again := *s.call(verify.Acquire, "bea again", 0)
			last := s.Calls[len(s.Calls)-1].Sent
			again.ID, again.Sent, again.Answered = len(s.Calls), last, last
			s.Calls = append(s.Calls, again)
		},
		"a wait that ended": func(s editable) {
			e := s.event(lock.Dequeued, "bea again")
			e.At = e.At.Add(-7 * time.Second)
		},
		"a lease that ended": func(s editable) {
			e := s.event(lock.Released, "ann")
			e.At = e.At.Add(-9 * time.Second)
		},
		"a lease that was promised for a short time": func(s editable) {
			s.grant(verify.Acquire, "ann", 0, func(g *lock.Grant) { g.ExpiresAt = g.AcquiredAt.Add(3 * time.Second) })
		},
		"a fault": func(s editable) { s.Faults = append(s.Faults, during(s, 0, 7*time.Second)) },
		"calls that fail now and then": func(s editable) {
			for at := time.Duration(0); at < unbrokenFor; at += 3 * time.Second {
				s.Faults = append(s.Faults, during(s, at, at+2*time.Second))
			}
		},
		"an epoch begins meanwhile": func(s editable) { s.beginEpoch(*s.event(lock.Dequeued, "bea again")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := copyOf(base)
			change(editable{t, &h})
			if found := circlesIn(h); len(found) != 0 {
				t.Errorf("found %q", found)
			}
		})
	}
}

// during returns a fault from one time after the beginning of the circle to another.
func during(s editable, from, to time.Duration) verify.Fault {
	begun := s.call(verify.Acquire, "bea again", 0).Sent
	return verify.Fault{Description: "a fault", At: begun + from, Ended: begun + to}
}

// TestShortCirclesAndFaultsDoNotMatter: a circle that is as long as the service may need, and a fault in a longer one.
func TestShortCirclesAndFaultsDoNotMatter(t *testing.T) {
	t.Parallel()
	if found := circlesIn(twoTasks.record(t, 4*time.Second)); len(found) != 0 {
		t.Errorf("found %q", found)
	}
	if found := circlesIn(twoTasks.record(t, 4500*time.Millisecond)); len(found) != 1 {
		t.Errorf("found %q, want one", found)
	}
	h := twoTasks.record(t, unbrokenFor)
	s := editable{t, &h}
	s.Faults = append(s.Faults, during(s, 0, time.Second))
	if found := circlesIn(h); len(found) != 1 {
		t.Errorf("with a fault, found %q, want one", found)
	}
}
