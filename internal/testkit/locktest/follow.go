package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func followCases() cases {
	return cases{
		"following a lock returns its next event":                 followNext,
		"following a prefix returns the events of its locks only": followPrefix,
		"existing events are returned at once":                    followAtOnce,
		"a wait for events that times out returns an empty page":  followOver,
		"the cursor now is after all existing events":             followNow,
		"the id of an event is a cursor":                          followID,
		"a follower misses no event under concurrent writes":      followMany,
		"the events of a waiter have its place":                   followPlace,
		"following ends with its context":                         followContext,
	}
}

// A follower waits for the next page of events.
type follower struct {
	reader
	pages chan []lock.Event
}

// startFollowing waits in the background for a page after q's cursor that is not empty.
func (s *fixture) startFollowing(q lock.EventQuery) *follower {
	f := &follower{reader{s, q}, make(chan []lock.Event, 1)}
	f.q.Wait = lock.MaxWait
	go func() {
		defer close(f.pages)
		for {
			page, err := s.locks.Events(s.ctx, f.q)
			if err != nil {
				return
			}
			f.q.Cursor = page.Next
			if len(page.Items) > 0 {
				f.pages <- page.Items
				return
			}
		}
	}()
	return f
}

// page waits for the page and returns it.
func (f *follower) page() []lock.Event {
	f.s.Helper()
	page, ok := <-f.pages
	if !ok {
		f.s.Fatal("following failed")
	}
	return page
}

// currentCursor returns the cursor after all visible events.
func (s *fixture) currentCursor() string {
	s.Helper()
	page, err := s.locks.Events(s.ctx, lock.EventQuery{Cursor: lock.CursorNow})
	s.must(err)
	if len(page.Items) != 0 || page.Next == "" || page.Next == lock.CursorNow {
		s.Fatalf("the page after now is %+v", page)
	}
	return page.Next
}

func followNext(s *fixture) {
	cursor := s.currentCursor()
	for range 3 {
		f := s.startFollowing(lock.EventQuery{Name: s.name, Cursor: cursor})
		s.mustAcquire(lock.Acquire{Name: s.name + ":other", Mode: lock.Shared})
		g := s.mustAcquire(lock.Acquire{})
		page := f.page()
		if len(page) != 1 || page[0].Name != s.name || page[0].Token != g.Token || page[0].Kind != lock.Granted {
			s.Fatalf("after the grant the page is %+v", page)
		}
		f = s.startFollowing(f.q)
		s.must(s.release(g))
		if page := f.page(); len(page) != 1 || page[0].Token != g.Token || page[0].Kind != lock.Released {
			s.Fatalf("after the release the page is %+v", page)
		}
		cursor = f.q.Cursor
	}
}

func followPrefix(s *fixture) {
	f := s.startFollowing(lock.EventQuery{Prefix: s.name + ":b", Cursor: s.currentCursor()})
	s.mustAcquire(lock.Acquire{Name: s.name + ":a"})
	s.mustAcquire(lock.Acquire{Name: s.name + ":c"})
	s.mustAcquire(lock.Acquire{Name: s.name + ":b:1"})
	if page := f.page(); len(page) != 1 || page[0].Name != s.name+":b:1" {
		s.Errorf("the page is %+v", page)
	}
}

func followAtOnce(s *fixture) {
	s.acquireAndRelease(lock.Acquire{})
	s.events(s.name, 2)
	for limit := range 3 {
		page, err := s.locks.Events(s.ctx, lock.EventQuery{Name: s.name, Limit: limit, Wait: lock.MaxWait})
		s.must(err)
		if want := 2 - limit%2; len(page.Items) != want || page.Gap {
			s.Errorf("with the limit %d the page is %+v", limit, page)
		}
	}
}

func followOver(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	r := &reader{s, lock.EventQuery{Name: s.name}}
	r.want(1)
	r.q.Wait = 3 * shortTTL
	began := time.Now()
	if page := r.read(); len(page) != 0 {
		s.Errorf("without an event the page is %+v", page)
	}
	if took := time.Since(began); took < 3*shortTTL-tolerance {
		s.Errorf("a wait of %v ended after %v", 3*shortTTL, took)
	}
	g := s.mustAcquire(lock.Acquire{Name: s.name + ":other"})
	s.must(s.release(g))
	s.mustRevoke(lock.Grant{Lease: lock.Lease{Token: s.get(s.name).Token}})
	r.q.Wait = 0
	if page := r.want(1); page[0].Kind != lock.Revoked {
		s.Errorf("the page is %+v", page)
	}
}

func followNow(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	s.events(s.name, 1) // wait until the event is visible
	r := &reader{s, lock.EventQuery{Name: s.name, Cursor: s.currentCursor()}}
	r.want(0)
	s.must(s.release(g))
	if page := r.want(1); page[0].Kind != lock.Released {
		s.Errorf("after the cursor now the page is %+v", page)
	}
}

func followID(s *fixture) {
	for range 3 {
		s.acquireAndRelease(lock.Acquire{})
	}
	all := s.events(s.name, 6)
	for i, e := range all {
		r := &reader{s, lock.EventQuery{Name: s.name, Cursor: strconv.FormatInt(e.ID, 10)}}
		if rest := r.want(5 - i); len(rest) > 0 && rest[0].ID != all[i+1].ID {
			s.Errorf("after event %d the page is %+v", e.ID, rest)
		}
	}
}

// followMany reads a prefix while several workers write.
func followMany(s *fixture) {
	const writers, rounds = 6, 15
	cursor := s.currentCursor()
	all := make(chan []lock.Event, 1)
	failed := make(chan error, 1)
	go func() {
		events, err := s.collect(lock.EventQuery{Prefix: s.name, Cursor: cursor, Limit: 7}, 2*writers*rounds)
		all <- events
		failed <- err
	}()
	s.runWorkers(writers, func(_ context.Context, i int) error {
		for v := range rounds {
			g, err := s.acquire(lock.Acquire{Name: fmt.Sprintf("%s:%d", s.name, (i+v)%writers), Mode: lock.Shared})
			if err == nil {
				err = s.release(g)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	of, last := map[string][]lock.Event{}, int64(0)
	for _, e := range <-all {
		if e.ID <= last {
			s.Errorf("event %d comes after event %d", e.ID, last)
		}
		of[e.Name], last = append(of[e.Name], e), e.ID
	}
	s.must(<-failed)
	for name, events := range of {
		if err := (verify.Rules{}).Check(events); err != nil || len(events) != 2*rounds {
			s.Errorf("%s has %d events, want %d: %v", name, len(events), 2*rounds, err)
		}
	}
}

// collect follows q until there are n events, or it fails.
func (s *fixture) collect(q lock.EventQuery, n int) ([]lock.Event, error) {
	var all []lock.Event
	q.Wait = lock.MaxWait
	for len(all) < n {
		page, err := s.locks.Events(s.ctx, q)
		if err != nil {
			return all, fmt.Errorf("after %d of %d events: %w", len(all), n, err)
		}
		all = append(all, page.Items...)
		q.Cursor = page.Next
	}
	return all, nil
}

func followPlace(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueueN(2)
	w[0].cancelAndWait()
	s.awaitQueue("waiter 2")
	s.must(s.release(first))
	g := w[1].mustBeGranted()
	events := s.events(s.name, 6)
	want := []lock.Kind{lock.Granted, lock.Queued, lock.Queued, lock.Dequeued, lock.Released, lock.Granted}
	if got := kinds(events); !slices.Equal(got, want) {
		s.Fatalf("the history is %v, want %v", got, want)
	}
	for i, place := range []int64{0, 2, 3, 2, 0, 3} {
		if events[i].Place != place {
			s.Errorf("the place of %+v is not %d", events[i], place)
		}
	}
	if events[1].Token != 0 || events[3].Token != 0 || events[3].Reason == "" || events[3].Holder != "waiter 1" ||
		events[5].Token != g.Token {
		s.Errorf("the history is %+v", events)
	}
}

func followContext(s *fixture) {
	cursor := s.currentCursor()
	ctx, cancel := context.WithTimeoutCause(s.ctx, shortTTL, errors.New("enough"))
	defer cancel()
	_, err := s.locks.Events(ctx, lock.EventQuery{Name: s.name, Cursor: cursor, Wait: lock.MaxWait})
	s.expectError(err, lock.ErrUnavailable)
}
