package lock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

// TestEventsSayWhoCausedThem: the call that did, and nobody for what time did. Of a waiter that is granted the lock,
// that is its own call, not the one that made room.
func TestEventsSayWhoCausedThem(t *testing.T) {
	t.Parallel()
	inSession := func(a *lock.Acquire) {
		a.SessionID, a.TTL, a.Task = sessionID, 0, lock.TaskID(fmt.Sprint(a.LeaseID[15]))
	}
	once := func(a *lock.Acquire) { a.Once = true }
	open := func(m *model) {
		s, err := m.change(lock.OpenSession{ID: sessionID, Holder: "worker", TTL: time.Minute})
		if err != nil {
			m.t.Fatalf("%v", err)
		}
		m.sessions[sessionID.Ref()] = s
	}
	for what, c := range map[string]struct {
		do   func(m *model, as func(string) *model)
		want []string
	}{
		"a lease is released by another key": {func(_ *model, as func(string) *model) {
			as("anna").must(acquire(1))
			as("bo").must(release(1))
		}, []string{"granted anna", "released bo"}},
		"a lease expires, and nobody did that": {func(m *model, as func(string) *model) {
			as("anna").must(acquire(1))
			m.advance(time.Hour)
			as("bo").must(acquire(2))
		}, []string{"granted anna", "expired", "granted bo"}},
		"a renewal with metadata": {func(_ *model, as func(string) *model) {
			as("anna").must(acquire(1))
			r := renew(1)
			r.Metadata = []byte(`{"step": 2}`)
			as("bo").must(renew(1))
			as("bo").must(r)
		}, []string{"granted anna", "metadata_updated bo"}},
		"a lease that stays is suspected by nobody": {func(m *model, as func(string) *model) {
			m.must(acquire(1, func(a *lock.Acquire) { a.Stays = true }))
			m.advance(time.Hour)
			as("anna").must(lock.Sweep{Locks: []string{name}})
		}, []string{"granted", "suspected"}},
		"a waiter is granted the lock that another key releases": {func(_ *model, as func(string) *model) {
			as("anna").must(acquire(1))
			as("bo").enqueue(2)
			as("anna").must(release(1))
		}, []string{"granted anna", "queued bo", "released anna", "granted bo"}},
		"a waiter comes back with another key": {func(_ *model, as func(string) *model) {
			as("anna").must(acquire(1))
			a := as("bo").enqueue(2, keep)
			as("bo").refused(endWait(a), lock.ErrHeld)
			as("cy").enqueue(2, keep)
			as("anna").must(release(1))
		}, []string{"granted anna", "queued bo", "released anna", "granted cy"}},
		"a waiter gives up": {func(_ *model, as func(string) *model) {
			as("anna").must(acquire(1))
			a, b := as("bo").enqueue(2), as("cy").enqueue(3)
			as("bo").refused(endWait(a), lock.ErrHeld)
			as("cy").must(disconnectNameless(b))
		}, []string{"granted anna", "queued bo", "queued cy", "dequeued bo", "dequeued cy"}},
		"a place is released by another key": {func(_ *model, as func(string) *model) {
			as("anna").must(acquire(1))
			as("bo").enqueue(2)
			as("cy").must(release(2))
		}, []string{"granted anna", "queued bo", "dequeued cy"}},
		"a place that is not used lapses": {func(m *model, as func(string) *model) {
			as("anna").must(acquire(1, func(a *lock.Acquire) { a.TTL = time.Hour }))
			a := as("bo").enqueue(2, keep)
			as("bo").refused(endWait(a), lock.ErrHeld)
			m.advance(time.Minute)
			as("cy").must(renew(1))
		}, []string{"granted anna", "queued bo", "dequeued"}},
		"work is done already": {func(_ *model, as func(string) *model) {
			as("anna").must(acquire(1))
			as("bo").enqueue(2, once)
			r := release(1)
			r.Closed.For = time.Hour
			as("anna").must(r)
		}, []string{"granted anna", "queued bo", "released anna", "dequeued bo"}},
		"an operator revokes, and then skips the grace": {func(_ *model, as func(string) *model) {
			d := as("anna").must(acquire(1, func(a *lock.Acquire) { a.Grace = time.Minute }))
			as("ops").must(revoke(leaseOf(d).Token, nil))
			as("ops2").must(revokeSkippingGrace(leaseOf(d).Token))
		}, []string{"granted anna", "revoked ops", "revoked ops2"}},
		"an operator opens a closed lock": {func(_ *model, as func(string) *model) {
			d := as("anna").must(acquire(1))
			r := release(1)
			r.Closed.For = time.Hour
			as("anna").must(r)
			as("ops").must(revoke(leaseOf(d).Token, nil))
		}, []string{"granted anna", "released anna", "opened ops"}},
		"an operator freezes and thaws": {func(_ *model, as func(string) *model) {
			as("ops").must(lock.NoteFreeze{Freeze: lock.Freeze{Scope: name}})
			as("ops2").must(lock.NoteFreeze{Freeze: lock.Freeze{Scope: name}, Thawed: true})
		}, []string{"frozen ops", "thawed ops2"}},
		"a stale write is reported": {func(_ *model, as func(string) *model) {
			d := as("anna").must(acquire(1))
			as("anna").must(release(1))
			as("db").must(lock.ReportStale{Name: name, Token: leaseOf(d).Token})
		}, []string{"granted anna", "released anna", "refused db"}},
		"a session is closed": {func(m *model, as func(string) *model) {
			open(m)
			as("anna").must(acquire(1, inSession))
			as("bo").enqueue(2, inSession)
			s, _ := m.change(lock.CloseSession{ID: sessionID, By: lock.Caller{Name: "cy"}})
			as("").must(lock.EndSession{Name: name, Ref: sessionID.Ref(), How: s.Ended, By: s.EndedBy})
		}, []string{"granted anna", "queued bo", "released cy", "dequeued cy"}},
		"a session is revoked": {func(m *model, as func(string) *model) {
			open(m)
			as("anna").must(acquire(1, inSession))
			as("bo").enqueue(2, inSession)
			s, _ := m.change(lock.RevokeSession{Ref: sessionID.Ref(), By: lock.Caller{Name: "ops"}})
			as("").must(lock.EndSession{Name: name, Ref: sessionID.Ref(), How: s.Ended, By: s.EndedBy})
		}, []string{"granted anna", "queued bo", "revoked ops", "dequeued ops"}},
		"a session expires": {func(m *model, as func(string) *model) {
			open(m)
			as("anna").must(acquire(1, inSession))
			as("bo").enqueue(2, inSession)
			m.advance(time.Hour)
			as("cy").must(lock.Sweep{Locks: []string{name}})
		}, []string{"granted anna", "queued bo", "expired", "dequeued"}},
		"a call waits for itself": {func(m *model, as func(string) *model) {
			task := func(a *lock.Acquire) { a.Task = "task" }
			as("anna").must(acquire(1, task))
			as("anna").refused(m.call(acquire(2, task)), lock.ErrDeadlock)
		}, []string{"granted anna", "queued anna", "dequeued anna"}},
	} {
		m := newModel(t)
		c.do(m, func(key string) *model {
			if m.by = (lock.Caller{Name: key}); key != "" {
				m.by.KeyID, m.by.Trace = "id of "+key, "trace of "+key
			}
			return m
		})
		var got []string
		for _, e := range m.events {
			text, by := e.Kind.String(), e.Caller
			if by.Name != "" {
				text += " " + by.Name
			}
			if got = append(got, text); by.KeyID != "" && (by.KeyID != "id of "+by.Name || by.Trace != "trace of "+by.Name) {
				t.Errorf("%s: the caller is %+v", what, by)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// TestEventsOfASetNameItsLocks, those that were asked for, also when the lease ends.
func TestEventsOfASetNameItsLocks(t *testing.T) {
	t.Parallel()
	trees := &lock.Policy{Trees: lock.Trees{"repo": {}}}
	for what, c := range map[string]struct {
		locks, want []string
		policy      *lock.Policy
	}{
		"one":               {[]string{"a"}, nil, nil},
		"two":               {[]string{"a", "b"}, []string{"a", "b"}, nil},
		"one in a tree":     {[]string{"repo:main"}, nil, trees},
		"two, one in there": {[]string{"a", "repo:main"}, []string{"a", "repo:main"}, trees},
	} {
		a := lock.Acquire{LeaseID: id(1), Holder: "worker", TTL: time.Minute}
		for _, name := range c.locks {
			a.Locks = append(a.Locks, lock.Member{Name: name, Mode: lock.Exclusive})
		}
		var cmd lock.Command = within(lock.Bounds{}, a)
		var records []lock.Record
		for _, kind := range []lock.Kind{lock.Granted, lock.Released} {
			in, err := cmd.In(c.policy)
			if err != nil {
				t.Fatal(err)
			}
			if records == nil {
				for _, name := range in.Names() {
					records = append(records, lock.Record{Name: name})
				}
			}
			d := in.Apply(lock.View{Now: t0, Locks: records, Policy: c.policy, Tokens: func() lock.Token { return 7 }})
			records = d.Locks
			if d.Err != nil || len(d.Events) != len(c.locks) {
				t.Fatalf("%s: %v, the events are %+v", what, d.Err, d.Events)
			}
			for _, e := range d.Events {
				if e.Kind != kind || !slices.Equal(e.Set, c.want) || e.Caller != (lock.Caller{}) {
					t.Errorf("%s: the event is %+v", what, e)
				}
			}
			cmd = lock.Release{Locks: c.locks, LeaseID: id(1)}
		}
	}
}
