package eventlog

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// hours writes one batch an hour, the last one an hour ago, and returns the events with their instants.
func hours(t *testing.T, conn *pgx.Conn, n int, names ...string) []lock.Event {
	t.Helper()
	var all []lock.Event
	for i := range n {
		var events []lock.Event
		for j, e := range granted(names...) {
			e.Kind, e.Holder = lock.Granted+lock.Kind((i+j)%3), fmt.Sprint("h", i%2)
			events = append(events, e)
		}
		events = commit(t, conn, events...)
		at := time.Now().Add(-time.Duration(n-i) * time.Hour).Truncate(time.Microsecond)
		exec(t, conn, "update paddock.event_batches set at = $2 where id = $1", epoch.BatchOf(events[0].ID), at)
		for _, e := range events {
			e.At = at
			all = append(all, e)
		}
	}
	return all
}

// TestEventsOfARange lists the events between any two of their instants, by kind and by holder, in both orders.
func TestEventsOfARange(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	all := hours(t, conn, 4, "a", "b", "a")
	instants := []time.Time{{}, all[0].At.Add(-time.Hour)}
	for i := 0; i < len(all); i += 3 {
		instants = append(instants, all[i].At, all[i].At.Add(time.Microsecond))
	}
	for i, since := range instants {
		for _, until := range append(instants[max(i, 1):], time.Time{}) {
			if !until.IsZero() && !until.After(since) {
				continue
			}
			for _, q := range []paddock.EventQuery{
				{}, {Names: []string{"a"}}, {Prefix: "b"}, {Kinds: []lock.Kind{lock.Released}}, {Holder: "h1"},
				{Names: []string{"b"}, Kinds: []lock.Kind{lock.Granted, lock.Expired}, Holder: "h0"},
			} {
				q.Since, q.Until, q.Limit = since, until, 5
				want := selectedBy(q, all)
				sameEvents(t, fmt.Sprintf("%+v", q), readAll(t, l, q), want)
				q.Descending = true
				slices.Reverse(want)
				sameEvents(t, fmt.Sprintf("%+v", q), readAll(t, l, q), want)
			}
		}
	}
}

// TestTheEndOfAList: the last page of a list that cannot grow has no cursor, and each page of one that can has one.
func TestTheEndOfAList(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	all := hours(t, conn, 3, "a")
	for name, c := range map[string]struct {
		q   paddock.EventQuery
		end bool
	}{
		"ascending":                     {paddock.EventQuery{}, false},
		"ascending, from an instant":    {paddock.EventQuery{Since: all[1].At}, false},
		"until an instant that is past": {paddock.EventQuery{Until: all[1].At}, true},
		"until just now":                {paddock.EventQuery{Until: time.Now().Add(-time.Millisecond)}, true},
		"until a later instant":         {paddock.EventQuery{Until: time.Now().Add(time.Hour)}, false},
		"until before all":              {paddock.EventQuery{Until: all[0].At.Add(-time.Hour)}, true},
		"descending":                    {paddock.EventQuery{Descending: true}, true},
		"descending, of one lock":       {paddock.EventQuery{Descending: true, Names: []string{"a"}}, true},
		"descending, of an unused lock": {paddock.EventQuery{Descending: true, Names: []string{"none"}}, true},
		"descending, a full page":       {paddock.EventQuery{Descending: true, Limit: 2}, false},
	} {
		if p := page(t, l, c.q); (p.Next == "") != c.end {
			t.Errorf("%s: the next cursor is %q", name, p.Next)
		}
	}
	empty := open(t, pgtest.URL(t))
	for _, q := range []paddock.EventQuery{{Descending: true}, {Since: all[0].At, Until: all[1].At}} {
		if p := page(t, empty, q); len(p.Items) > 0 || p.Next != "" || p.Gap {
			t.Errorf("%+v without events: %+v", q, p)
		}
	}
}

// TestARangeOfPrunedEventsHasAGap: a list says that the first events of its range are no longer kept.
func TestARangeOfPrunedEventsHasAGap(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	l, conn := open(t, url), connect(t, url)
	all := hours(t, conn, 6, "a")
	exec(t, conn, "delete from paddock.event_batches where id <= $1", epoch.BatchOf(all[2].ID))
	exec(t, conn, "update paddock.horizon set pruned = $1", all[2].ID)
	for name, c := range map[string]struct {
		q   paddock.EventQuery
		gap bool
	}{
		"from the oldest one":                   {paddock.EventQuery{}, false},
		"from before":                           {paddock.EventQuery{Since: all[1].At}, true},
		"from a kept event":                     {paddock.EventQuery{Since: all[4].At}, false},
		"descending to the oldest one":          {paddock.EventQuery{Descending: true}, true},
		"descending, not yet there":             {paddock.EventQuery{Descending: true, Limit: 2}, false},
		"descending to before":                  {paddock.EventQuery{Descending: true, Since: all[1].At}, true},
		"descending to a kept event":            {paddock.EventQuery{Descending: true, Since: all[4].At}, false},
		"descending, the history of one lock":   {paddock.EventQuery{Descending: true, Names: []string{"a"}}, true},
		"a range of which nothing is kept":      {paddock.EventQuery{Since: all[0].At, Until: all[1].At}, true},
		"a range of which everything is kept":   {paddock.EventQuery{Since: all[4].At, Until: all[5].At}, false},
		"a range of one lock, partly not kept":  {paddock.EventQuery{Names: []string{"a"}, Since: all[0].At}, true},
		"a range of one lock that is all there": {paddock.EventQuery{Names: []string{"a"}, Since: all[4].At}, false},
	} {
		if p := page(t, l, c.q); p.Gap != c.gap {
			t.Errorf("%s: a gap: %t", name, p.Gap)
		}
	}
}
