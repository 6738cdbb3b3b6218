package eventlog

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestPagesResumeInsideBatches reads batches whose locks take turns, from every event on and in pages of every length.
func TestPagesResumeInsideBatches(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	var all []lock.Event
	for _, names := range [][]string{{"a:1", "b", "a:1", "a:2", "b"}, {"c"}, {"a:2", "a:1", "c", "c"}, {"b", "a:1", "b"}} {
		all = append(all, commit(t, conn, granted(names...)...)...)
	}
	selections := []lock.EventQuery{{}, {Name: "a:1"}, {Name: "c"}, {Name: "none"}, {Prefix: "a:"}, {Prefix: "b"}, {Prefix: "z"}}
	for from := -1; from < len(all); from++ {
		for _, q := range selections {
			rest := all
			if from >= 0 {
				q.Cursor, rest = strconv.FormatInt(all[from].ID, 10), all[from+1:]
			}
			want := selected(rest, lock.EventQuery{Name: q.Name, Prefix: q.Prefix, Limit: len(all)})
			for limit := range 6 {
				q.Limit = limit
				sameEvents(t, fmt.Sprintf("%+v", q), readAll(t, l, q), want)
			}
		}
	}
}

// TestEventsAreAsTheyWereWritten compares every field.
func TestEventsAreAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	written := commit(t, conn, lock.Event{
		Name: `a "name" ü`, Slot: 3, Kind: lock.Revoked, Mode: lock.Permit, Holder: "h\n", Token: 7, Place: 9,
		Reason: "told to", Ref: 77,
	})[0]
	for _, q := range []lock.EventQuery{{}, {Name: written.Name}, {Prefix: `a "`}} {
		got := page(t, l, q).Items
		if len(got) != 1 || got[0].At.IsZero() {
			t.Fatalf("%+v", got)
		}
		want := written
		want.At, want.Ref = got[0].At, 0
		if got[0] != want {
			t.Errorf("read %+v, want %+v", got[0], want)
		}
	}
}

// TestCursorsAreChecked: a cursor is an id in its only form, now, or absent.
func TestCursorsAreChecked(t *testing.T) {
	t.Parallel()
	l := open(t, pgtest.URL(t))
	for _, cursor := range []string{"x", "-1", "01", "+1", " 1", "1 or 1=1", "99999999999999999999"} {
		_, err := l.Page(t.Context(), lock.EventQuery{Cursor: cursor})
		if e := new(lock.Error); !errors.As(err, &e) || !errors.Is(err, lock.ErrInvalid) || e.Field != "cursor" {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
	for _, cursor := range []string{"", "0", "12345678", lock.CursorNow} {
		if p := page(t, l, lock.EventQuery{Cursor: cursor}); len(p.Items) > 0 || p.Gap || p.Next == "" {
			t.Errorf("the cursor %q: %+v", cursor, p)
		}
	}
	if _, err := l.Page(t.Context(), lock.EventQuery{Limit: lock.MaxLimit + 1}); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("an invalid limit: %v", err)
	}
}

// TestWorkForAPageIsBounded has events of a prefix only beyond the batches that one round trip searches.
func TestWorkForAPageIsBounded(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	const others = 2*scanBatches + 500
	exec(t, conn, `insert into paddock.event_batches (id, at, entries)
		select nextval('paddock.event_batch_ids'), clock_timestamp(),
		       array[json_build_array('other', i - 1, json_build_array(0, 0, i, 1, 1, 'h', i, 0, '', 0))]
		from generate_series(1, $1::integer) i`, others)
	want := commit(t, conn, granted("rare")...)

	q := lock.EventQuery{Prefix: "rare", Limit: 10}
	for step, at := range []int64{0, scanBatches, 2 * scanBatches} {
		after := int64(0)
		if step > 0 {
			after = lastOf(at)
		}
		s, b, err := l.read(t.Context(), q, after)
		if err != nil {
			t.Fatal(err)
		}
		if step < 2 && (len(s.events) > 0 || s.end || s.upTo != lastOf(at+scanBatches)) {
			t.Errorf("round trip %d: %+v", step, s)
		}
		if step == 2 && (len(s.events) != 1 || !s.end || s.upTo != b.upTo) {
			t.Errorf("the last round trip: %+v, up to %d", s, b.upTo)
		}
	}
	sameEvents(t, "the page", page(t, l, q).Items, want)
	if n := len(page(t, l, lock.EventQuery{Limit: lock.MaxLimit}).Items); n != lock.MaxLimit {
		t.Errorf("a page of all events has %d", n)
	}
}

// TestPageOfLargeBatches: a page reads no more batches than it has events, and is full.
func TestPageOfLargeBatches(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	rng := rand.New(rand.NewPCG(1, 2))
	var all []lock.Event
	for range 12 {
		var names []string
		for range 50 + rng.IntN(100) {
			names = append(names, fmt.Sprintf("%c:%d", 'a'+rune(rng.IntN(2)), rng.IntN(20)))
		}
		all = append(all, commit(t, conn, granted(names...)...)...)
	}
	for _, limit := range []int{1, 99, 100, 101, lock.MaxLimit} {
		sameEvents(t, "all", readAll(t, l, lock.EventQuery{Limit: limit}), all)
		if n := len(page(t, l, lock.EventQuery{Limit: limit}).Items); n != min(limit, len(all)) {
			t.Errorf("a page with the limit %d has %d events", limit, n)
		}
		want := slices.DeleteFunc(slices.Clone(all), func(e lock.Event) bool { return !strings.HasPrefix(e.Name, "b:") })
		sameEvents(t, "a prefix", readAll(t, l, lock.EventQuery{Prefix: "b:", Limit: limit}), want)
	}
}

// TestBrokenEntryIsReported: an entry that was changed by hand fails the page, and names the batch.
func TestBrokenEntryIsReported(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	exec(t, conn, `insert into paddock.event_batches (id, at, entries) values (7, now(), array['["a", 0, [1]]'::json])`)
	if _, err := l.Page(t.Context(), lock.EventQuery{}); err == nil || !strings.Contains(errors.Unwrap(err).Error(), "row 7 ") {
		t.Errorf("err = %v", err)
	}
}
