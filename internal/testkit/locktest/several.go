package locktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func severalCases() cases {
	return cases{
		"following several locks returns the events of these": severalFollowed,
		"events of other kinds are not told":                  severalKinds,
		"a loss between two calls is told by the next one":    severalBetween,
		"the end of a session is told":                        severalSession,
		"a session that has ended is told at once":            severalEnded,
		"several locks and sessions have bounds":              severalBounds,
	}
}

// losses are the ends of leases.
var losses = []lock.Kind{lock.Released, lock.Expired, lock.Revoked}

func severalFollowed(s *fixture) {
	q := paddock.EventQuery{Names: []string{s.other(3), s.name, s.other(1)}, Cursor: s.currentCursor()}
	for _, name := range slices.Concat(q.Names, q.Names) {
		await := s.startFollowing(q)
		s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: s.other(2), Mode: lock.Shared}}})
		g := s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: name, Mode: lock.Shared}}})
		page := await()
		if len(page.Items) != 1 || page.Items[0].Name != name || page.Items[0].Token != g.Token || page.Gap || page.EndedSessions != nil {
			s.Fatalf("after the grant of %s the page is %+v", name, page)
		}
		q.Cursor = page.Next
	}
}

func severalKinds(s *fixture) {
	q := paddock.EventQuery{Names: []string{s.name, s.other(1)}, Cursor: s.currentCursor(), Kinds: []lock.Kind{lock.Revoked}}
	await := s.startFollowing(q)
	s.acquireAndRelease(lock.Acquire{})
	g := s.mustAcquire(lock.Acquire{})
	s.mustRevoke(g)
	if page := await(); len(page.Items) != 1 || page.Items[0].Kind != lock.Revoked || page.Items[0].Token != g.Token {
		s.Errorf("the page is %+v", page)
	}
}

// severalBetween revokes while no call waits.
func severalBetween(s *fixture) {
	q := paddock.EventQuery{Names: []string{s.name, s.other(1)}, Cursor: s.currentCursor(), Kinds: losses}
	for range 5 {
		g := s.mustAcquire(lock.Acquire{})
		s.mustRevoke(g)
		page := s.startFollowing(q)()
		if len(page.Items) != 1 || page.Items[0].Token != g.Token {
			s.Fatalf("after the revocation of %d the page is %+v", g.Token, page)
		}
		q.Cursor = page.Next
	}
}

func severalSession(s *fixture) {
	for how, end := range map[string]func(lock.SessionGrant) error{
		"closed": func(g lock.SessionGrant) error {
			return s.locks().CloseSession(s.ctx, lock.CloseSession{ID: g.ID})
		},
		"revoked": func(g lock.SessionGrant) error {
			return errOf(s.locks().RevokeSession(s.ctx, lock.RevokeSession{Ref: g.ID.Ref(), Reason: testReason}))
		},
		"expired": func(lock.SessionGrant) error { return nil },
	} {
		open, ttl := s.openSession(lock.OpenSession{}), longTTL
		if how == "expired" {
			ttl = 3 * shortTTL
		}
		g := s.openSession(lock.OpenSession{TTL: ttl})
		await := s.startFollowing(paddock.EventQuery{Sessions: []lock.SessionRef{open.ID.Ref(), g.ID.Ref()}, Cursor: s.currentCursor()})
		s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: s.name, Mode: lock.Shared}}}) // no event is told without names
		s.must(end(g))
		if page := await(); len(page.Items) != 0 || !slices.Equal(page.EndedSessions, []lock.SessionRef{g.ID.Ref()}) || page.Next == "" {
			s.Errorf("after a session has %s the page is %+v", how, page)
		}
	}
}

func severalEnded(s *fixture) {
	g, unknown := s.openSession(lock.OpenSession{}), lock.SessionID(uuid.New()).Ref()
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: g.ID}))
	want := []lock.SessionRef{g.ID.Ref(), unknown}
	slices.Sort(want)
	began := time.Now()
	for _, wait := range []time.Duration{0, lock.MaxWait} {
		page, err := s.locks().Events(s.ctx, paddock.EventQuery{Names: []string{s.name}, Sessions: want, Cursor: paddock.CursorNow, Wait: wait})
		s.must(err)
		if slices.Sort(page.EndedSessions); !slices.Equal(page.EndedSessions, want) || page.Next == "" {
			s.Errorf("the page is %+v", page)
		}
	}
	if took := time.Since(began); took >= lock.MaxWait {
		s.Errorf("it took %v", took)
	}
}

func severalBounds(s *fixture) {
	many, sessions := make([]string, paddock.MaxEventNames+1), make([]lock.SessionRef, paddock.MaxEventSessions+1)
	for i := range many {
		many[i] = fmt.Sprintf("%s:%d", s.name, i)
	}
	for i := range sessions {
		sessions[i] = lock.SessionRef(i + 1)
	}
	events := func(q paddock.EventQuery) error { return errOf(s.locks().Events(s.ctx, q)) }
	s.must(events(paddock.EventQuery{Names: many[1:], Sessions: sessions[1:], Cursor: paddock.CursorNow, Limit: paddock.MaxLimit}))
	two, now := []string{s.name, s.other(1)}, time.Now()
	expectAllInvalid(s, events, map[string][]paddock.EventQuery{
		"locks":      {{Names: many}},
		"locks/1":    {{Names: []string{s.name, ""}}, {Names: []string{s.name, "a b"}}},
		"locks/2":    {{Names: []string{s.other(1), s.name, s.name}}},
		"sessions":   {{Sessions: sessions}},
		"sessions/2": {{Sessions: []lock.SessionRef{5, 4, 5}}},
		"prefix":     {{Names: two, Prefix: s.name}, {Sessions: sessions[:1], Prefix: s.name}},
		"holder":     {{Names: two, Holder: "h"}},
		"since":      {{Names: two, Since: now}},
		"until":      {{Names: two, Until: now}},
		"order":      {{Names: two, Descending: true}},
		"limit":      {{Names: two, Limit: 1}},
	})
}
