package locktest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/paddock-lock/paddock"
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
		"following ends with its context":                         followContext,
	}
}

// startFollowing waits in the background for a page after q's cursor that has news, and returns a function that
// waits for it.
func (s *fixture) startFollowing(q paddock.EventQuery) (await func() paddock.Page[lock.Event]) {
	q.Wait = lock.MaxWait
	return inBackground(s, func() (paddock.Page[lock.Event], error) {
		for {
			page, err := s.locks().Events(s.ctx, q)
			if q.Cursor = page.Next; err != nil || len(page.Items)+len(page.EndedSessions) > 0 {
				return page, err
			}
		}
	})
}

// currentCursor returns the cursor after all visible events.
func (s *fixture) currentCursor() string {
	s.Helper()
	page, err := s.locks().Events(s.ctx, paddock.EventQuery{Cursor: paddock.CursorNow})
	s.must(err)
	if len(page.Items) != 0 || page.Next == "" || page.Next == paddock.CursorNow {
		s.Fatalf("the page after now is %+v", page)
	}
	return page.Next
}

func followNext(s *fixture) {
	q := paddock.EventQuery{Names: []string{s.name}, Cursor: s.currentCursor()}
	for range 3 {
		await := s.startFollowing(q)
		s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: s.name + ":other", Mode: lock.Shared}}})
		g := s.mustAcquire(lock.Acquire{})
		page := await()
		if len(page.Items) != 1 || page.Items[0].Name != s.name || page.Items[0].Token != g.Token || page.Items[0].Kind != lock.Granted {
			s.Fatalf("after the grant the page is %+v", page)
		}
		q.Cursor = page.Next
		await = s.startFollowing(q)
		s.must(s.release(g))
		if page = await(); len(page.Items) != 1 || page.Items[0].Token != g.Token || page.Items[0].Kind != lock.Released {
			s.Fatalf("after the release the page is %+v", page)
		}
		q.Cursor = page.Next
	}
}

func followPrefix(s *fixture) {
	await := s.startFollowing(paddock.EventQuery{Prefix: s.name + ":b", Cursor: s.currentCursor()})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":a")})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":c")})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":b:1")})
	if page := await(); len(page.Items) != 1 || page.Items[0].Name != s.name+":b:1" {
		s.Errorf("the page is %+v", page)
	}
}

func followAtOnce(s *fixture) {
	s.acquireAndRelease(lock.Acquire{})
	s.events(s.name, 2)
	for limit := range 3 {
		page, err := s.locks().Events(s.ctx, paddock.EventQuery{Names: []string{s.name}, Limit: limit, Wait: lock.MaxWait})
		s.must(err)
		if want := 2 - limit%2; len(page.Items) != want || page.Gap {
			s.Errorf("with the limit %d the page is %+v", limit, page)
		}
	}
}

func followOver(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	r := &reader{s, paddock.EventQuery{Names: []string{s.name}}}
	r.want(1)
	r.q.Wait = 3 * shortTTL
	began := time.Now()
	if page := r.read(); len(page) != 0 {
		s.Errorf("without an event the page is %+v", page)
	}
	if took := time.Since(began); took < 3*shortTTL-tolerance {
		s.Errorf("a wait of %v ended after %v", 3*shortTTL, took)
	}
	g := s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":other")})
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
	r := &reader{s, paddock.EventQuery{Names: []string{s.name}, Cursor: s.currentCursor()}}
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
		r := &reader{s, paddock.EventQuery{Names: []string{s.name}, Cursor: strconv.FormatInt(e.ID, 10)}}
		if rest := r.want(5 - i); len(rest) > 0 && rest[0].ID != all[i+1].ID {
			s.Errorf("after event %d the page is %+v", e.ID, rest)
		}
	}
}

// followMany reads a prefix while several workers write.
func followMany(s *fixture) {
	const writers, rounds = 6, 15
	cursor := s.currentCursor()
	await := inBackground(s, func() ([]lock.Event, error) {
		return s.collect(paddock.EventQuery{Prefix: s.name, Cursor: cursor, Limit: 7}, 2*writers*rounds)
	})
	s.runWorkers(writers, func(_ context.Context, i int) error {
		for v := range rounds {
			g, err := s.acquire(lock.Acquire{Locks: []lock.Member{{Name: fmt.Sprintf("%s:%d", s.name, (i+v)%writers), Mode: lock.Shared}}})
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
	for _, e := range await() {
		if e.ID <= last {
			s.Errorf("event %d comes after event %d", e.ID, last)
		}
		of[e.Name], last = append(of[e.Name], e), e.ID
	}
	for name, events := range of {
		if err := (verify.Rules{}).Check(events); err != nil || len(events) != 2*rounds {
			s.Errorf("%s has %d events, want %d: %v", name, len(events), 2*rounds, err)
		}
	}
}

// collect follows q until there are n events, or it fails.
func (s *fixture) collect(q paddock.EventQuery, n int) ([]lock.Event, error) {
	var all []lock.Event
	q.Wait = lock.MaxWait
	for len(all) < n {
		page, err := s.locks().Events(s.ctx, q)
		if err != nil {
			return all, fmt.Errorf("after %d of %d events: %w", len(all), n, err)
		}
		all = append(all, page.Items...)
		q.Cursor = page.Next
	}
	return all, nil
}

func followContext(s *fixture) {
	cursor := s.currentCursor()
	ctx, cancel := context.WithTimeoutCause(s.ctx, shortTTL, errors.New("enough"))
	defer cancel()
	s.expectError(errOf(s.locks().Events(ctx, paddock.EventQuery{Names: []string{s.name}, Cursor: cursor, Wait: lock.MaxWait})), lock.ErrUnavailable)
}
