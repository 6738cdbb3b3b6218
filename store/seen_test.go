package store

import (
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestALockThatWasPrunedSinceItWasSeenIsMadeAgain with a greater token.
func TestALockThatWasPrunedSinceItWasSeenIsMadeAgain(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), pgtest.URL(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var last lock.Token
	for range 2 {
		g, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "h"})
		if err != nil || g.Token <= last {
			t.Fatalf("token %d after %d: %v", g.Token, last, err)
		}
		last = g.Token
		if err := s.Release(t.Context(), lock.Release{Name: "a", LeaseID: g.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.pool.Exec(t.Context(), "delete from paddock.locks"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	var names seen
	for i := range maxSeen + 2 {
		names.note(slices.Values([]string{fmt.Sprint(i)}))
	}
	if n := len(names.names); n > maxSeen || len(names.missing([]string{fmt.Sprint(maxSeen + 1), "other"})) != 1 {
		t.Errorf("%d names are remembered, or the newest is not", n)
	}
	calls := newSeats(1)
	for i := range lock.Attachment(maxServed + 1) {
		calls.taken.Add(1)
		calls.leave(&seat{attachment: 1 + i}, true)
	}
	if calls.grant(1, outcome{}) || !calls.grant(2, outcome{}) || !calls.grant(maxServed+1, outcome{}) || len(calls.served) != maxServed {
		t.Errorf("%d who left with a grant are remembered, or not the newest", len(calls.served))
	}
}
