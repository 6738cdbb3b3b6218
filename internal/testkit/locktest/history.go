package locktest

import (
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func historyCases() cases {
	return cases{
		"events are listed from the newest on":              historyDescending,
		"events are selected by kind, holder and instant":   historySelection,
		"a list of the past ends, and a range may be empty": historyEnds,
		"who held a lock, at an instant and last":           holdsAt,
	}
}

// list returns all events that the query selects, page by page.
func (s *fixture) list(q paddock.EventQuery) []lock.Event {
	s.Helper()
	var all []lock.Event
	for {
		page, err := s.locks().Events(s.ctx, q)
		s.must(err)
		if all = append(all, page.Items...); page.Next == "" || len(page.Items) == 0 && page.Next == q.Cursor {
			return all
		}
		q.Cursor = page.Next
	}
}

func ids(events []lock.Event) []int64 {
	var ids []int64
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// past lets a hold the lock and release it, b hold it until it expires, and c hold it.
func (s *fixture) past() (events []lock.Event) {
	s.Helper()
	g := s.mustAcquire(lock.Acquire{Holder: "a"})
	s.pass()
	s.must(s.release(g))
	s.pass()
	s.acquireAndExpire(lock.Acquire{Holder: "b"})
	s.mustAcquire(lock.Acquire{Holder: "c"})
	return s.events(s.name, 5)
}

func historyDescending(s *fixture) {
	all := s.past()
	slices.Reverse(all)
	for limit := 1; limit <= 6; limit++ {
		q := paddock.EventQuery{Names: []string{s.name}, Descending: true, Limit: limit}
		if got := s.list(q); !slices.Equal(ids(got), ids(all)) {
			s.Errorf("in pages of %d the events are %v, want %v", limit, ids(got), ids(all))
		}
		q.Names, q.Prefix = nil, s.name
		if got := s.list(q); !slices.Equal(ids(got), ids(all)) {
			s.Errorf("by prefix, in pages of %d, the events are %v, want %v", limit, ids(got), ids(all))
		}
	}
}

func historySelection(s *fixture) {
	all := s.past()
	for name, q := range map[string]paddock.EventQuery{
		"one kind":           {Kinds: []lock.Kind{lock.Granted}},
		"two kinds":          {Kinds: []lock.Kind{lock.Released, lock.Expired}},
		"a kind that is not": {Kinds: []lock.Kind{lock.Revoked}},
		"a holder":           {Holder: "b"},
		"a holder's kind":    {Holder: "b", Kinds: []lock.Kind{lock.Expired}},
		"no holder":          {Holder: "nobody"},
		"since":              {Since: all[2].At},
		"until":              {Until: all[3].At},
		"between":            {Since: all[1].At, Until: all[4].At},
	} {
		q.Names = []string{s.name}
		var want []lock.Event
		for _, e := range all {
			if q.Selects(&e) {
				want = append(want, e)
			}
		}
		if got := s.list(q); !slices.Equal(ids(got), ids(want)) {
			s.Errorf("%s: the events are %v, want %v of %v", name, ids(got), ids(want), ids(all))
		}
	}
}

func historyEnds(s *fixture) {
	all := s.past()
	page, err := s.locks().Events(s.ctx, paddock.EventQuery{Names: []string{s.name}, Since: all[0].At, Until: all[0].At.Add(time.Microsecond)})
	s.must(err)
	if page.Next != "" || page.Gap || !slices.Contains(ids(page.Items), all[0].ID) {
		s.Errorf("the page until an instant of the past is %+v", page)
	}
	page, err = s.locks().Events(s.ctx, paddock.EventQuery{Names: []string{s.name}, Until: all[0].At})
	s.must(err)
	if page.Next != "" || len(page.Items) > 0 {
		s.Errorf("the page from before the first event is %+v", page)
	}
	page, err = s.locks().Events(s.ctx, paddock.EventQuery{Names: []string{s.name}, Since: all[0].At})
	s.must(err)
	if page.Next == "" {
		s.Errorf("a list that can grow has an end: %+v", page)
	}
}

func holdsAt(s *fixture) {
	all := s.past()
	for name, c := range map[string]struct {
		q    paddock.HoldQuery
		want []string
	}{
		"before the first grant": {paddock.HoldQuery{At: all[0].At.Add(-time.Microsecond)}, nil},
		"at the first grant":     {paddock.HoldQuery{At: all[0].At}, []string{"a"}},
		"at the release":         {paddock.HoldQuery{At: all[1].At}, nil},
		"before the expiry":      {paddock.HoldQuery{At: all[3].At.Add(-time.Microsecond)}, []string{"b"}},
		"now":                    {paddock.HoldQuery{At: all[4].At.Add(time.Hour)}, []string{"c"}},
		"all":                    {paddock.HoldQuery{}, []string{"c", "b", "a"}},
		"the newest two":         {paddock.HoldQuery{Limit: 2}, []string{"c", "b"}},
		"an older one":           {paddock.HoldQuery{Until: all[4].At, Limit: 1}, []string{"b"}},
		"the oldest":             {paddock.HoldQuery{Until: all[2].At}, []string{"a"}},
		"before them all":        {paddock.HoldQuery{Until: all[0].At}, nil},
	} {
		c.q.Name = s.name
		list, err := paddock.ReadHolds(s.ctx, s.locks(), c.q)
		s.must(err)
		var got []string
		for _, h := range list.Holds {
			got = append(got, h.Holder)
		}
		if !list.Complete || !slices.Equal(got, c.want) {
			s.Errorf("%s: %q held the lock, complete: %t, want %q", name, got, list.Complete, c.want)
		}
	}
	list, err := paddock.ReadHolds(s.ctx, s.locks(), paddock.HoldQuery{Name: s.name, At: all[3].At.Add(-time.Microsecond)})
	s.must(err)
	want := lock.Hold{
		Mode: lock.Exclusive, Holder: "b", Token: all[2].Token, GrantedAt: all[2].At, EndedAt: all[3].At, End: lock.Expired,
	}
	if h := list.Holds[0]; h != want {
		s.Errorf("the lease is %+v, want %+v", h, want)
	}
}
