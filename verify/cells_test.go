package verify_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// token returns the nth token of the cell at the position.
func token(n lock.Token, position int) lock.Token {
	return (n*placement.Step + lock.Token(position)) * lock.MaxTokens
}

// TestTokensOfDifferentCellsAreNotOrdered: each grant has one token more than the last one of the same cell, or fewer if
// the letter is of upper case.
func TestTokensOfDifferentCellsAreNotOrdered(t *testing.T) {
	for name, c := range map[string]struct {
		cells    string // the cell of each grant; the lock has the same group, unless groups says otherwise
		groups   string
		violates bool
	}{
		"two cells in turns":                    {cells: "abbbab", groups: "abbbab"},
		"the tokens of a cell fall":             {cells: "aabBb", groups: "aabbb", violates: true},
		"the tokens of a cell fall, two groups": {cells: "aaA", groups: "abb", violates: true},
		"a group moves, its tokens grow":        {cells: "abbb", groups: "bbbb"},
		"a group moves, its tokens fall":        {cells: "aaaab", groups: "bbbbb", violates: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec, service := verify.NewRecorder(), memlock.New().Replica(1)
				for i, group := range c.groups {
					use(t, rec.Client(via, service), fmt.Sprintf("%c:%d", group, i), lock.Exclusive)
				}
				h, next, drawn := rec.History(), 0, map[rune]lock.Token{}
				for i := range h.Calls {
					g, granted := h.Calls[i].Response.(lock.Grant)
					if !granted {
						continue
					}
					cell := rune(c.cells[next])
					lower := cell | 0x20
					if drawn[lower]++; cell != lower {
						drawn[lower] -= 2
					}
					g.Leases = slices.Clone(g.Leases)
					g.Token = token(drawn[lower], int(lower-'a'))
					g.Leases[0].Token = g.Token
					h.Calls[i].Response = g
					next++
				}
				r := h.Check(verify.CheckOptions{Cells: true})
				for _, check := range r.Checks {
					if found := len(check.Violations) > 0 && check.Name == byTokenOrder; found != (c.violates && check.Name == byTokenOrder) {
						t.Errorf("%s: found %t\n%s", check.Name, found, text(t, r))
					}
				}
			})
		})
	}
}

// TestALeaseMayBeReleasedWithASessionThatIsLostElsewhere: in another cell the session may have expired before.
func TestALeaseMayBeReleasedWithASessionThatIsLostElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := verify.NewRecorder()
		c := rec.Client(via, memlock.New().Replica(1))
		id := lock.SessionID{1}
		if _, err := c.OpenSession(t.Context(), lock.OpenSession{ID: id, Holder: "ann", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		a := lock.Acquire{Locks: lock.One("play:1"), LeaseID: lock.LeaseID{1}, Holder: "ann", SessionID: id}
		if _, err := c.Acquire(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if err := c.CloseSession(t.Context(), lock.CloseSession{ID: id}); err != nil {
			t.Fatal(err)
		}
		events, err := verify.Collect(t.Context(), c, "play:")
		if err != nil {
			t.Fatal(err)
		}
		h := rec.History()
		h.Events = events
		h.Calls[2].Err = &lock.Error{Code: lock.ErrSessionLost, Ended: lock.Expired}
		for _, inCells := range []bool{false, true} {
			if r := h.Check(verify.CheckOptions{Cells: inCells}); r.OK() != inCells {
				t.Errorf("in cells %t:\n%s", inCells, text(t, r))
			}
		}
	})
}

// event returns the nth event of the cell at the position, a second after the one before, about a lock of its own.
func event(n, position int) lock.Event {
	return lock.Event{ID: int64(n*placement.Step+position) * 4096, Name: fmt.Sprintf("play:%d.%d", n, position), Kind: lock.Granted, Revision: 1,
		At: time.Unix(int64(n), 0), Holder: "ann", Token: token(lock.Token(n), position), Mode: lock.Exclusive}
}

// TestEachCellsEventsAreDeliveredInItsOwnOrder: a page of events of several cells is not in the order of the ids.
func TestEachCellsEventsAreDeliveredInItsOwnOrder(t *testing.T) {
	t.Parallel()
	a1, a2, b1, b2, b3 := event(1, 0), event(9, 0), event(2, 5), event(3, 5), event(4, 5)
	for name, c := range map[string]struct {
		pages [][]lock.Event
		nexts []string
		want  string // part of a violation
	}{
		"every event once": {
			[][]lock.Event{{a1, a2, b1}, {b2}, {b3}},
			[]string{cursorAfter(a2, b1), cursorAfter(a2, b2), cursorAfter(a2, b3)}, ""},
		"a cell was away at first": {
			[][]lock.Event{{a1}, {a2}, {b1, b2, b3}},
			[]string{cursorAfter(a1), cursorAfter(a2) + ".05-n", cursorAfter(a2, b3)}, ""},
		"one of the later cell is missing": {
			[][]lock.Event{{a1, b1}, {b3, a2}},
			[]string{cursorAfter(a1, b1), cursorAfter(a2, b3)}, fmt.Sprint("without event ", b2.ID)},
		"one comes twice": {
			[][]lock.Event{{a1, b1}, {b1, b2, b3, a2}},
			[]string{cursorAfter(a1, b1), cursorAfter(a2, b3)}, "twice, or out of order"},
		"the cursor of a cell goes back": {
			[][]lock.Event{{a1, b1, b2}, {b3, a2}, {}},
			[]string{cursorAfter(a1, b2), cursorAfter(a2, b3), cursorAfter(a2, b1)}, "received the earlier cursor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := verify.NewRecorder()
			s, cursor := rec.Subscribe(verify.Streaming, "play:"), "0"
			for i, page := range c.pages {
				s.Requested(via, cursor)
				s.Opened()
				cursor = c.nexts[i]
				s.Received(paddock.Page[lock.Event]{Items: page, Next: cursor})
				s.Ended(nil)
			}
			h := rec.History()
			h.Events = []lock.Event{a1, a2, b1, b2, b3}
			r := h.Check(verify.CheckOptions{Cells: true})
			for _, check := range r.Checks {
				if check.Name != byDeliveries {
					continue
				}
				if (len(check.Violations) > 0) != (c.want != "") || c.want != "" && !strings.Contains(check.Violations[0].Message, c.want) {
					t.Errorf("want %q\n%s", c.want, text(t, r))
				}
			}
		})
	}
}

// cursorAfter returns the cursor of several cells after the events.
func cursorAfter(events ...lock.Event) string {
	parts := make([]string, len(events))
	for i, e := range events {
		parts[i] = fmt.Sprintf("%02d-%d", e.ID/4096%placement.Step, e.ID)
	}
	return strings.Join(parts, ".")
}
