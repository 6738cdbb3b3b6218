package locktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func eventCases() cases {
	return cases{
		"a lock's events are its history in order, with holder, token and reason": eventsHistory,
		"pages have no gaps and no duplicates":                                    eventsPages,
		"a prefix selects the events of several locks":                            eventsPrefix,
		"an event has the session and the set of its lease":                       eventsBelong,
	}
}

// eventsBelong: also those of the end of a lease, and of a session that has ended.
func eventsBelong(s *fixture) {
	g := s.openSession(lock.OpenSession{})
	s.acquireAndRelease(lock.Acquire{Locks: s.set(1, 2), SessionID: g.ID})
	s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.other(1))})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1)), SessionID: g.ID})
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
	ref, both := g.ID.Ref(), s.others(1, 2)
	for i, want := range []lock.Event{
		{Kind: lock.Granted, Session: ref, Set: both}, {Kind: lock.Released, Session: ref, Set: both},
		{Kind: lock.Granted}, {Kind: lock.Released},
		{Kind: lock.Granted, Session: ref}, {Kind: lock.Released, Session: ref},
	} {
		if e := s.events(s.other(1), 6)[i]; e.Kind != want.Kind || e.Session != want.Session || !slices.Equal(e.Set, want.Set) {
			s.Errorf("event %d is %+v, want %+v", i, e, want)
		}
	}
}

// A reader reads consecutive pages of events.
type reader struct {
	s *fixture
	q paddock.EventQuery
}

// read returns the next page. Its cursor is never empty.
func (r *reader) read() []lock.Event {
	r.s.Helper()
	page, err := r.s.locks().Events(r.s.ctx, r.q)
	r.s.must(err)
	if page.Next == "" {
		r.s.Fatal("a page of events has no cursor")
	}
	if limit := r.q.Limit; limit > 0 && len(page.Items) > limit {
		r.s.Fatalf("a page has %d events, want at most %d", len(page.Items), limit)
	}
	r.q.Cursor = page.Next
	return page.Items
}

// want reads until there are n events, and ends the test if there are more.
func (r *reader) want(n int) []lock.Event {
	r.s.Helper()
	var all []lock.Event
	r.s.eventually(fmt.Sprintf("there are %d events", n), func() bool {
		page := r.read()
		for ; len(page) > 0; page = r.read() {
			all = append(all, page...)
		}
		return len(all) >= n
	})
	if len(all) != n {
		r.s.Fatalf("there are %d events, want %d: %+v", len(all), n, all)
	}
	return all
}

// events returns the n events of the lock.
func (s *fixture) events(name string, n int) []lock.Event {
	s.Helper()
	return (&reader{s, paddock.EventQuery{Names: []string{name}}}).want(n)
}

func kinds(events []lock.Event) []lock.Kind {
	var kinds []lock.Kind
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// expectNoGaps ends the test unless events are the first of one lock, in order.
func (s *fixture) expectNoGaps(events []lock.Event) {
	s.Helper()
	for i, e := range events {
		if e.Revision != int64(i+1) {
			s.Fatalf("event %d has the revision %d: %+v", i+1, e.Revision, events)
		}
		if i > 0 && (e.ID <= events[i-1].ID || e.At.Before(events[i-1].At)) {
			s.Fatalf("event %d is not after the one before it: %+v", i+1, events)
		}
	}
}

func eventsHistory(s *fixture) {
	s.acquireAndRelease(lock.Acquire{})
	s.acquireAndExpire(lock.Acquire{})
	g := s.mustAcquire(lock.Acquire{Holder: "the holder"})
	revoked := s.mustRevoke(g)
	s.mustAcquire(lock.Acquire{})
	events := s.events(s.name, 7)
	s.expectNoGaps(events)
	want := []lock.Kind{
		lock.Granted, lock.Released, lock.Granted, lock.Expired, lock.Granted, lock.Revoked, lock.Granted,
	}
	if got := kinds(events); !slices.Equal(got, want) {
		s.Errorf("the history is %v, want %v", got, want)
	}
	for i, at := range []time.Time{g.AcquiredAt, revoked.ChangedAt} {
		if e := events[4+i]; !isNear(e.At, at) || e.Name != s.name || e.Slot != 0 || e.Mode != lock.Exclusive || e.Holder != "the holder" ||
			e.Token != g.Token || e.Reason != []string{"", testReason}[i] {
			s.Errorf("of %+v, the event is %+v", g.Lease, e)
		}
	}
}

func eventsPages(s *fixture) {
	for range 4 {
		s.acquireAndRelease(lock.Acquire{})
	}
	for limit := range 10 {
		r := &reader{s, paddock.EventQuery{Names: []string{s.name}, Limit: limit}}
		s.expectNoGaps(r.want(8))
	}
}

func eventsPrefix(s *fixture) {
	for _, name := range []string{":b", ":a", ":b", ":c", ":a"} {
		s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + name)})
	}
	s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name)})
	r := &reader{s, paddock.EventQuery{Prefix: s.name + ":", Limit: 3}}
	of := map[string][]lock.Event{}
	var last int64
	for _, e := range r.want(10) {
		if e.ID <= last {
			s.Errorf("event %d comes after event %d", e.ID, last)
		}
		last = e.ID
		of[e.Name] = append(of[e.Name], e)
	}
	for name, n := range map[string]int{":a": 4, ":b": 4, ":c": 2} {
		if events := of[s.name+name]; len(events) != n {
			s.Errorf("there are %d events of %s, want %d", len(events), name, n)
		} else {
			s.expectNoGaps(events)
		}
	}
}
