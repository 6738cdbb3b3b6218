package eventlog

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// TestPagesResumeInsideBatches reads batches whose locks take turns, from every event on and in pages of several
// lengths and in both orders.
func TestPagesResumeInsideBatches(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	var all []lock.Event
	for _, names := range [][]string{{"a:1", "b", "a:1", "a:2", "b"}, {"c"}, {"a:2", "a:1", "c", "c"}, {"b", "a:1", "b"}} {
		all = append(all, commit(t, conn, granted(names...)...)...)
	}
	selections := []paddock.EventQuery{
		{}, {Names: []string{"a:1"}}, {Names: []string{"c"}}, {Names: []string{"none"}}, {Prefix: "a:"}, {Prefix: "b"}, {Prefix: "z"},
	}
	for from := -1; from < len(all); from++ {
		for _, q := range selections {
			rest := all
			if from >= 0 {
				q.Cursor, rest = strconv.FormatInt(all[from].ID, 10), all[from+1:]
			}
			want := selectedBy(q, rest)
			for _, limit := range []int{0, 1, 3} {
				q.Limit = limit
				sameEvents(t, fmt.Sprintf("%+v", q), readAll(t, l, q), want)
			}
		}
	}
	for before := range len(all) + 1 {
		for _, q := range selections {
			want := selectedBy(q, all[:before])
			slices.Reverse(want)
			if q.Descending = true; before < len(all) {
				q.Cursor = strconv.FormatInt(all[before].ID, 10)
			}
			for _, limit := range []int{0, 1, 3} {
				q.Limit = limit
				sameEvents(t, fmt.Sprintf("%+v", q), readAll(t, l, q), want)
			}
		}
	}
}

// TestCursorsAreChecked: a cursor is an id in its only form, now, or absent.
func TestCursorsAreChecked(t *testing.T) {
	t.Parallel()
	l := open(t, pgtest.URL(t))
	for _, cursor := range []string{"x", "-1", "01", "+1", " 1", "1 or 1=1", "99999999999999999999"} {
		_, err := l.Page(t.Context(), paddock.EventQuery{Cursor: cursor}, nil)
		if e := new(lock.Error); !errors.As(err, &e) || !errors.Is(err, lock.ErrInvalid) || e.Field != "cursor" {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
	for _, cursor := range []string{"", "0", "12345678", paddock.CursorNow} {
		if p := page(t, l, paddock.EventQuery{Cursor: cursor}); len(p.Items) > 0 || p.Gap || p.Next == "" {
			t.Errorf("the cursor %q: %+v", cursor, p)
		}
	}
	if _, err := l.Page(t.Context(), paddock.EventQuery{Limit: paddock.MaxLimit + 1}, nil); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("an invalid limit: %v", err)
	}
}

// TestStepsAreBoundedByBatches has events of a prefix only beyond the batches that one step searches.
func TestStepsAreBoundedByBatches(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	size := int64(nextStep.batches)
	others := 2*size + 500
	exec(t, conn, `insert into paddock.event_batches (id, at, entries)
		select nextval('paddock.event_batch_ids'), clock_timestamp(),
		       array[json_build_array('other', i - 1, json_build_array(0, 0, i, 1, 1, 'h', i, 0, '', 0))]
		from generate_series(1, $1::integer) i`, others)
	want := commit(t, conn, granted("rare")...)

	q := paddock.EventQuery{Prefix: "rare", Limit: 10}
	for step, at := range []int64{0, size, 2 * size} {
		after := int64(0)
		if step > 0 {
			after = lastOf(at)
		}
		s, b, err := l.read(t.Context(), q, after, nextStep)
		if err != nil {
			t.Fatal(err)
		}
		if step < 2 && (s.events > 0 || s.end || s.upTo != lastOf(at+size)) {
			t.Errorf("step %d: %+v", step, s)
		}
		if step == 2 && (s.events != 1 || !s.end || s.upTo != b.upTo) {
			t.Errorf("the last step: %+v, up to %d", s, b.upTo)
		}
	}
	sameEvents(t, "the page", page(t, l, q).Items, want)
	if n := len(page(t, l, paddock.EventQuery{Limit: paddock.MaxLimit}).Items); n != paddock.MaxLimit {
		t.Errorf("a page of all events has %d", n)
	}
}

// TestStepsAreBoundedByBytes has batches that are larger than one step, as those of converted events may be: a step
// reads one of them, and pages are full.
func TestStepsAreBoundedByBytes(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	const batches, locks = 3, 4096
	exec(t, conn, `insert into paddock.event_batches (id, at, entries)
		select i, clock_timestamp(), array(
			select json_build_array('n:' || j, i - 1, json_build_array(j, 0, i, 1, 1, md5((i * j)::text), i, 0, '', 0))
			from generate_series(0, $2::integer - 1) j)
		from generate_series(0, $1::integer - 1) i`, batches, locks)
	q := paddock.EventQuery{Limit: paddock.MaxLimit}
	for _, size := range []step{firstStep(10), {batches: 1000, bytes: 1}} {
		s, _, err := l.read(t.Context(), paddock.EventQuery{Limit: batches * locks}, 0, size)
		if err != nil || s.end || s.upTo != lastOf(0) || s.events != locks-1 { // no event has the id 0
			t.Errorf("a step reads %d events, up to %d, %v", s.events, s.upTo, err)
		}
	}
	n := 0
	for {
		p := page(t, l, q)
		n, q.Cursor = n+len(p.Items), p.Next
		if len(p.Items) < q.Limit {
			break
		}
	}
	if n != batches*locks-1 {
		t.Errorf("full pages up to the end have %d events, want %d", n, batches*locks-1)
	}
	for _, limit := range []int{3, 40} {
		q := paddock.EventQuery{Prefix: "n:77", Limit: limit}
		if n := len(readAll(t, l, q)); n != batches*11 {
			t.Errorf("%d events of a prefix, want %d", n, batches*11)
		}
		if n := len(page(t, l, q).Items); n != min(limit, batches*11) {
			t.Errorf("a page of %d has %d events", limit, n)
		}
	}
}

// TestBrokenEntryIsReported: an entry that was changed by hand is named, and costs no other one. It is logged once.
func TestBrokenEntryIsReported(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	var logged strings.Builder
	l.db.Log = slog.New(slog.NewTextHandler(&logged, nil))
	exec(t, conn, `insert into paddock.event_batches (id, at, entries)
		values (7, now(), array['["a", 0, [1]]', '["b",0,[0,1,1,1,1,"h",7,0,"",0],[1,1,2,1,1,"h",7,0,"",0]]', '7']::json[])`)
	exec(t, conn, "select setval('paddock.event_batch_ids', 10)")
	for range 2 {
		page, err := l.Page(t.Context(), paddock.EventQuery{}, nil)
		if err != nil || len(page.Items) != 2 || page.Items[0].Name != "b" {
			t.Errorf("the page is %+v, %v", page.Items, err)
		}
		if len(page.Unreadable) == 0 || page.Unreadable[0].Name != "a" || !strings.Contains(page.Unreadable[0].Detail, "paddock.event_batches (id = 7)") {
			t.Errorf("unreadable are %+v", page.Unreadable)
		}
	}
	for _, q := range []paddock.EventQuery{{Limit: 1}, {Limit: 1, Descending: true}} { // one page ends at the id of the entries
		var events, unreadable int
		for range 3 {
			p := page(t, l, q)
			events, unreadable, q.Cursor = events+len(p.Items), unreadable+len(p.Unreadable), p.Next
			if p.Next == "" {
				break
			}
		}
		if events != 2 || unreadable != 2 {
			t.Errorf("pages of %+v have %d events, and %d entries that cannot be read; want 2 each", q, events, unreadable)
		}
	}
	if n := strings.Count(logged.String(), "row cannot be read"); n != 1 {
		t.Errorf("logged %d times: %s", n, logged.String())
	}
}

// TestSubscribersLearnOfABrokenEntry: the entry of a lock is named to the subscribers that select the lock, once to each
// that goes on from cursor to cursor.
func TestSubscribersLearnOfABrokenEntry(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := openAndRun(t, url), connect(t, url)
	now := page(t, l, paddock.EventQuery{Cursor: paddock.CursorNow}).Next
	answers := make(chan []paddock.Unreadable)
	for _, q := range []paddock.EventQuery{{Names: []string{"a"}}, {Prefix: "a"}, {}, {Limit: 1}} {
		q.Cursor, q.Wait = now, lock.MaxWait
		go func() {
			var all []paddock.Unreadable
			for last := ""; last != "a"; {
				p, err := l.Page(t.Context(), q, nil)
				if err != nil {
					t.Error(err)
					break
				}
				all, q.Cursor = append(all, p.Unreadable...), p.Next
				for _, e := range p.Items {
					last = e.Name
				}
			}
			answers <- all
		}()
	}
	subscribed(t, l, 4)
	x := begin(t, conn)
	x.write(granted("a", "b", "b")...)
	exec(t, conn, `update paddock.event_batches set entries[1] = '["a", 0, [1]]' where id = $1`, x.batch)
	x.commit()
	commit(t, conn, granted("a")...)
	for range 4 {
		if all := <-answers; len(all) != 1 || all[0].Name != "a" {
			t.Errorf("unreadable are %+v", all)
		}
	}
}
