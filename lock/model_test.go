package lock_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// t0 is when the tests begin.
var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const name = "jobs:nightly"

func id(n byte) lock.LeaseID { return lock.LeaseID{15: n} }

// A tester is a test or a property.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// A model is one lock with its clock, replicas and history, without a store.
type model struct {
	t       tester
	record  lock.Record
	now     time.Time
	self    lock.Replica               // the deciding replica
	by      lock.Caller                // who makes the calls
	silent  map[lock.Replica]time.Time // dead replicas, since when
	calls   lock.Attachment            // number of waiting calls
	token   lock.Token
	ended   map[lock.LeaseRef]lock.Event
	events  []lock.Event
	checker *eventChecker

	sessions map[lock.SessionRef]lock.Session

	pausedUntil time.Time // grants are paused until then
	policy      lock.Policy
	ruled       bool // there was a rule, so leases may be outside of the capacity
}

func newModel(t tester) *model {
	return &model{
		t: t, record: lock.Record{Name: name}, now: t0, self: 1, silent: map[lock.Replica]time.Time{},
		ended: map[lock.LeaseRef]lock.Event{}, checker: newEventChecker(), sessions: map[lock.SessionRef]lock.Session{},
	}
}

// do applies the command as a store would, and checks the decision.
func (w *model) do(cmd lock.Command) lock.Decision {
	w.t.Helper()
	w.expireSessions()
	w.ruled = w.ruled || len(w.policy.Rules) > 0
	cmd, err := cmd.In(&w.policy)
	if err != nil {
		return lock.Decision{Err: err, Locks: []lock.Record{w.record}}
	}
	x := decisionCheck{
		cmd:    cmd,
		self:   w.self,
		clock:  w.now,
		before: w.view(),
		paused: w.now.Before(w.pausedUntil) || w.isFrozen(),
		ruled:  w.ruled,
	}
	x.given = withSpareCapacity(x.before)
	x.Decision = cmd.Apply(
		lock.View{
			Now:               w.now,
			Caller:            w.by,
			Self:              w.self,
			Locks:             []lock.Record{x.given},
			Ended:             w.ended,
			Sessions:          w.sessions,
			GrantsPausedUntil: w.pausedUntil,
			Policy:            &w.policy,
			Tokens: func() lock.Token {
				x.drawn++
				w.token++
				return w.token
			},
		},
	)
	w.record = x.Locks[0]
	w.events = append(w.events, x.Events...)
	for _, e := range x.Events {
		if e.Ref != 0 {
			w.ended[e.Ref] = e
		}
	}
	if err := cmp.Or(x.check(), retryAfterHeld(x.Err), w.checker.add(x.Events, w.record)); err != nil {
		w.t.Fatalf("%T%+v: %v", cmd, cmd, err)
	}
	return x.Decision
}

// isFrozen reports whether a freeze covers the lock.
func (w *model) isFrozen() bool {
	for s, f := range w.policy.Freezes {
		if s.Covers(name) && (f.Until.IsZero() || w.now.Before(f.Until)) {
			return true
		}
	}
	return false
}

// freeze declares a freeze of the scope, zero for one without an end.
func (w *model) freeze(s lock.Scope, d time.Duration) {
	f := lock.Freeze{Scope: s, Reason: "maintenance", By: "ops"}
	if d > 0 {
		f.Until = w.now.Add(d)
	}
	w.policy.Freezes = map[lock.Scope]lock.Freeze{s: f}
}

// retryAfterHeld returns what is wrong with the refusal of a lock that is held: it says when to retry.
func retryAfterHeld(err error) error {
	if e := new(lock.Error); errors.As(err, &e) && e.Code == lock.ErrHeld && e.RetryAfter <= 0 {
		return fmt.Errorf("a retry after %v is refused: %w", e.RetryAfter, e)
	}
	return nil
}

// expireSessions records the end of the sessions that are over.
func (w *model) expireSessions() {
	for ref, s := range w.sessions {
		w.sessions[ref], _ = s.Expire(w.now)
	}
}

// change decides the change of a session, as a store would.
func (w *model) change(c lock.SessionChange) (lock.Session, error) {
	w.expireSessions()
	after, changed, err := c.Change(w.session(c.Session()), w.now)
	if changed {
		w.sessions[c.Session()] = after
	}
	return after, err
}

func (w *model) session(ref lock.SessionRef) *lock.Session {
	if s, found := w.sessions[ref]; found {
		return &s
	}
	return nil
}

// view returns the record as a store reads it: with the AliveUntil of the replicas, and the ends of the sessions.
func (w *model) view() lock.Record {
	s := w.record
	s.Leases, s.Queue = slices.Clone(s.Leases), slices.Clone(s.Queue)
	for i, l := range s.Leases {
		s.Leases[i] = l.In(w.session(l.Session))
	}
	for i, o := range s.Queue {
		if o.Lease.Session != 0 {
			read := *o
			read.Lease = o.Lease.In(w.session(o.Lease.Session))
			s.Queue[i], o = &read, &read
		}
		heard, silent := w.silent[o.Replica]
		if !silent {
			heard = w.now
		}
		if alive := heard.Add(lock.ReplicaTTL); o.Replica != 0 && alive.After(o.AliveUntil) {
			heard := *o
			heard.AliveUntil = alive
			s.Queue[i] = &heard
		}
	}
	return s
}

// must is do for a command that must succeed.
func (w *model) must(cmd lock.Command) lock.Decision {
	w.t.Helper()
	d := w.do(cmd)
	if d.Err != nil {
		w.t.Fatalf("%T: %v", cmd, d.Err)
	}
	return d
}

// refused is do for a command that must be refused with the code.
func (w *model) refused(cmd lock.Command, code lock.Code) *lock.Error {
	w.t.Helper()
	d := w.do(cmd)
	e := new(lock.Error)
	if !errors.Is(d.Err, code) || !errors.As(d.Err, &e) {
		w.t.Fatalf("%T: %v, want %v", cmd, d.Err, code)
	}
	if e.Detail == "" {
		w.t.Errorf("%T: %v without a detail", cmd, code)
	}
	return e
}

func (w *model) advance(d time.Duration) { w.now = w.now.Add(d) }

// on sets the deciding replica.
func (w *model) on(r lock.Replica) *model {
	w.self = r
	return w
}

// silence stops the heartbeats of the replica.
func (w *model) silence(r lock.Replica) { w.silent[r] = w.now }

// unsilence resumes the heartbeats of the replica.
func (w *model) unsilence(r lock.Replica) { delete(w.silent, r) }

// enqueue adds a new waiting call with lease ID n at the deciding replica.
func (w *model) enqueue(n byte, change ...func(*lock.Acquire)) lock.Acquire {
	w.t.Helper()
	a := w.call(acquire(n, change...))
	if d := w.must(a); !d.Queued {
		w.t.Fatalf("lease_id %d is not queued: %+v", n, leaseOf(d))
	}
	return a
}

// call returns a as a new waiting call at the deciding replica.
func (w *model) call(a lock.Acquire) lock.Acquire {
	w.calls++
	a.Wait = cmp.Or(a.Wait, 20*time.Second)
	a.Attachment, a.Replica = w.calls, w.self
	return a
}

// hasEnded reports whether the lease is known to have ended.
func (w *model) hasEnded(id lock.LeaseID) bool {
	e, known := w.ended[lock.RefOf(name, id)]
	return known && e.Kind != lock.Dequeued
}

// expect checks the leases and the queue, by the last byte of their lease IDs, such as "1! 2? | 2 3 (4)": an
// unclaimed lease has a question mark, a revoked lease in its grace an exclamation mark, and a detached waiter is in
// brackets.
func (w *model) expect(want string) {
	w.t.Helper()
	var held, queue []string
	for _, l := range w.record.Leases {
		mark := ""
		switch {
		case l.Revoked():
			mark = "!"
		case l.Unclaimed():
			mark = "?"
		}
		held = append(held, fmt.Sprintf("%d%s", l.ID[15], mark))
	}
	for _, o := range w.view().Queue {
		form := "%d"
		if !o.Attached(w.now, w.self) {
			form = "(%d)"
		}
		queue = append(queue, fmt.Sprintf(form, o.Lease.ID[15]))
	}
	if got := strings.TrimSpace(strings.Join(held, " ") + " | " + strings.Join(queue, " ")); got != want {
		w.t.Fatalf("the lock is %q, want %q", got, want)
	}
}

func acquire(n byte, change ...func(*lock.Acquire)) lock.Acquire {
	a := lock.Acquire{Locks: []lock.Member{{Name: name, Mode: lock.Exclusive}}, LeaseID: id(n), Holder: "worker", TTL: 10 * time.Second}
	for _, c := range change {
		c(&a)
	}
	return within(lock.Bounds{}, a)
}

// within resolves a, which must be valid.
func within(b lock.Bounds, a lock.Acquire) lock.Acquire {
	b, err := b.Resolve()
	if err != nil {
		panic(err)
	}
	if a, err = a.Resolve(b); err != nil {
		panic(err)
	}
	return a
}

func shared(a *lock.Acquire) { a.Locks[0].Mode = lock.Shared }

func keep(a *lock.Acquire) { a.KeepPlace = true }

// permits asks for n permits of the capacity.
func permits(capacity, n int) func(*lock.Acquire) {
	return func(a *lock.Acquire) {
		a.Locks[0].Mode, a.Locks[0].Capacity, a.Locks[0].Permits = lock.Permit, capacity, n
	}
}

func permit(capacity int) func(*lock.Acquire) {
	return func(a *lock.Acquire) { a.Locks[0].Mode, a.Locks[0].Capacity = lock.Permit, capacity }
}

func renew(n byte) lock.Renew     { return lock.Renew{Locks: []string{name}, LeaseID: id(n)} }
func release(n byte) lock.Release { return lock.Release{Locks: []string{name}, LeaseID: id(n)} }

func claim(a lock.Acquire) lock.Claim {
	return lock.Claim{Locks: []string{name}, LeaseID: a.LeaseID, Attachment: a.Attachment}
}

// endWait returns the Leave of the call at the end of its wait.
func endWait(a lock.Acquire) lock.Leave {
	return lock.Leave{Locks: []string{name}, LeaseID: a.LeaseID, Attachment: a.Attachment, KeepPlace: a.KeepPlace}
}

// disconnect returns the Leave of the call when its connection is closed.
func disconnect(a lock.Acquire) lock.Leave {
	return lock.Leave{Locks: []string{name}, LeaseID: a.LeaseID, Attachment: a.Attachment, KeepPlace: true, Disconnected: true}
}

// disconnectNameless returns the Leave of the call when its connection is closed and its lease_id was generated, so
// that no client can return with it.
func disconnectNameless(a lock.Acquire) lock.Leave {
	l := disconnect(a)
	l.KeepPlace = false
	return l
}

var sweep = lock.Sweep{Locks: []string{name}}

// leaseOf returns the first lease of the answer, zero if there is none.
func leaseOf(d lock.Decision) lock.Lease {
	if len(d.Leases) == 0 {
		return lock.Lease{}
	}
	return d.Leases[0]
}
