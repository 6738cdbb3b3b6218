package locktest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

func listCases() cases {
	return cases{
		"a prefix selects names in byte order":         listPrefix,
		"a state selects locks by their current state": listState,
		"a holder selects the locks that it holds now": listHolder,
		"a part of the name selects locks":             listContains,
		"a list of contended locks has the waiters":    listContended,
		"a list is sorted by waiters, age or end":      listSorted,
		"pages have no gaps, no duplicates and an end": listPages,
		"a listed lock equals the lock read alone":     listSame,
		"an invalid cursor is refused":                 listCursor,
		"a prefix without locks gives an empty page":   listNothing,
	}
}

// names returns the names of the locks on all pages, less their common prefix.
func (s *fixture) names(q lock.LockQuery) []string {
	s.Helper()
	var names []string
	for {
		page, err := s.locks.Locks(s.ctx, q)
		s.must(err)
		if q.Limit > 0 && len(page.Items) > q.Limit {
			s.Fatalf("a page has %d locks, want at most %d", len(page.Items), q.Limit)
		}
		for _, l := range page.Items {
			names = append(names, l.Name[len(s.name):])
		}
		if page.Next == "" {
			return names
		}
		if page.Next == q.Cursor {
			s.Fatalf("the page after %q leads to itself", q.Cursor)
		}
		q.Cursor = page.Next
	}
}

func listPrefix(s *fixture) {
	names := []string{":a", ":b", ":Z", ":a:b", ":a.b", ":a-b", ":a_b", ":a@b", ":10", ":9", "-"}
	for _, n := range names {
		s.acquireAndRelease(lock.Acquire{Name: s.name + n})
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, s.names(lock.LockQuery{Prefix: s.name})); diff != "" {
		s.Errorf("the list differs (-want +got):\n%s", diff)
	}
	below := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return len(n) < 2 || n[:2] != ":a" })
	if diff := cmp.Diff(below, s.names(lock.LockQuery{Prefix: s.name + ":a"})); diff != "" {
		s.Errorf("the list under :a differs (-want +got):\n%s", diff)
	}
	if got := s.names(lock.LockQuery{Prefix: s.name + ":a_"}); !slices.Equal(got, []string{":a_b"}) {
		s.Errorf("the list under :a_ is %v: a prefix is not a pattern", got)
	}
}

func listState(s *fixture) {
	s.mustAcquire(lock.Acquire{Name: s.name + ":held"})
	s.acquireAndRelease(lock.Acquire{Name: s.name + ":released"})
	s.acquireAndExpire(lock.Acquire{Name: s.name + ":expired"})
	s.mustAcquire(lock.Acquire{Name: s.name + ":grace", TTL: shortTTL, Grace: lock.MaxGrace})
	s.awaitState(s.name+":grace", lock.InGrace)
	for state, want := range map[lock.State][]string{
		lock.Held:    {":held"},
		lock.InGrace: {":grace"},
		lock.Free:    {":expired", ":released"},
		"":           {":expired", ":grace", ":held", ":released"},
	} {
		for _, limit := range []int{0, 1} {
			if got := s.names(lock.LockQuery{Prefix: s.name, State: state, Limit: limit}); !slices.Equal(got, want) {
				s.Errorf("in state %q with %d a page the list is %v, want %v", state, limit, got, want)
			}
		}
	}
}

func listHolder(s *fixture) {
	s.mustAcquire(lock.Acquire{Name: s.name + ":1", Holder: "me & 'you' %"})
	s.mustAcquire(lock.Acquire{Name: s.name + ":2", Holder: "me"})
	s.mustAcquire(lock.Acquire{Name: s.name + ":3", Holder: "me & 'you' %", TTL: shortTTL, Grace: lock.MaxGrace})
	s.acquireAndRelease(lock.Acquire{Name: s.name + ":4", Holder: "me & 'you' %"})
	s.acquireAndExpire(lock.Acquire{Name: s.name + ":5", Holder: "me & 'you' %"})
	q := lock.LockQuery{Prefix: s.name, Holder: "me & 'you' %"}
	if got := s.names(q); !slices.Equal(got, []string{":1", ":3"}) {
		s.Errorf("the holder has %v, want :1 and :3", got)
	}
	q.State = lock.Held
	s.awaitState(s.name+":3", lock.InGrace)
	if got := s.names(q); !slices.Equal(got, []string{":1"}) {
		s.Errorf("the holder has the held locks %v, want :1", got)
	}
}

func listPages(s *fixture) {
	var want []string
	for c := 'a'; c < 'h'; c++ {
		s.acquireAndRelease(lock.Acquire{Name: s.name + ":" + string(c)})
		want = append(want, ":"+string(c))
	}
	for limit := range 9 {
		if got := s.names(lock.LockQuery{Prefix: s.name, Limit: limit}); !slices.Equal(got, want) {
			s.Errorf("%d a page: the list is %v, want %v", limit, got, want)
		}
	}
}

func listSame(s *fixture) {
	s.mustAcquire(lock.Acquire{Metadata: []byte(`{"a":1}`), Grace: shortTTL})
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name})
	s.must(err)
	if len(page.Items) != 1 || len(page.Items[0].Leases) != 1 {
		s.Fatalf("the list is %+v", page)
	}
	listed, looked := page.Items[0], s.get(s.name)
	if looked.AsOf.Before(listed.AsOf) {
		s.Errorf("read at %v, listed at %v", looked.AsOf, listed.AsOf)
	}
	listed.AsOf, listed.Leases[0].Remaining = looked.AsOf, looked.Leases[0].Remaining
	if diff := cmp.Diff(looked, listed); diff != "" {
		s.Errorf("the lock differs (-read +listed):\n%s", diff)
	}
}

func listCursor(s *fixture) {
	for _, cursor := range []string{"x", "not a cursor", "AAAA", "%00", "1 or 1=1"} {
		_, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name, Cursor: cursor})
		if e := s.expectError(err, lock.ErrInvalid); e.Field != "cursor" {
			s.Errorf("the cursor %q: the invalid field is %q", cursor, e.Field)
		}
	}
}

func listNothing(s *fixture) {
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name})
	s.must(err)
	if len(page.Items) != 0 || page.Next != "" {
		s.Errorf("the page is %+v", page)
	}
}

func listContains(s *fixture) {
	for _, n := range []string{":night", ":a_night", ":a@night:b", ":NIGHT", ":nigh"} {
		s.mustAcquire(lock.Acquire{Name: s.name + n})
	}
	for part, want := range map[string][]string{
		"night": {":a@night:b", ":a_night", ":night"}, "_night": {":a_night"}, "@": {":a@night:b"}, "night:b": {":a@night:b"}, "NI": {":NIGHT"}, "x": nil,
	} {
		if got := s.names(lock.LockQuery{Prefix: s.name, Contains: part, Limit: 2}); !slices.Equal(got, want) {
			s.Errorf("the locks with %q are %v, want %v", part, got, want)
		}
	}
}

// listContended also checks the order by waiters, of which free locks are no part.
func listContended(s *fixture) {
	s.acquireAndRelease(lock.Acquire{Name: s.name + ":free"})
	for i, n := range []string{":none", ":one", ":two"} {
		held := s.mustAcquire(lock.Acquire{Name: s.name + n})
		var waiters []*waitingCall
		for j := range i {
			waiters = append(waiters, s.enqueue(lock.Acquire{Name: s.name + n, Holder: fmt.Sprint("waiter ", j)}))
		}
		defer func() {
			s.must(s.release(held))
			for _, w := range waiters {
				s.must(s.release(w.mustBeGranted()))
			}
		}()
	}
	contended := lock.LockQuery{Prefix: s.name, Contended: true}
	s.eventually("three waiters are seen", func() bool {
		page, err := s.locks.Locks(s.ctx, contended)
		s.must(err)
		return len(page.Items) == 2 && page.Items[0].Waiters+page.Items[1].Waiters == 3
	})
	for want, q := range map[string]lock.LockQuery{
		":one:two":      contended,
		":two:one:none": {Prefix: s.name, Sort: lock.ByWaiters},
		":two:one":      {Prefix: s.name, Sort: lock.ByWaiters, Limit: 2},
	} {
		if got := strings.Join(s.names(q), ""); got != want {
			s.Errorf("%+v lists %s, want %s", q, got, want)
		}
	}
}

func listSorted(s *fixture) {
	for _, a := range []lock.Acquire{
		{Name: ":b", TTL: 2 * time.Hour}, {Name: ":c", TTL: 3 * time.Hour}, {Name: ":a", TTL: time.Hour},
	} {
		a.Name = s.name + a.Name
		s.mustAcquire(a)
		s.pass()
	}
	s.acquireAndRelease(lock.Acquire{Name: s.name + ":free"})
	for order, want := range map[lock.LockOrder]string{
		lock.ByName: ":a:b:c:free", lock.ByAge: ":b:c:a", lock.ByEnding: ":a:b:c", lock.ByWaiters: ":a:b:c",
	} {
		if got := strings.Join(s.names(lock.LockQuery{Prefix: s.name, Sort: order}), ""); got != want {
			s.Errorf("by %q: %s, want %s", order, got, want)
		}
	}
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name, Limit: 1})
	s.must(err)
	for _, q := range []lock.LockQuery{{Sort: "name"}, {Sort: lock.ByAge, Cursor: page.Next}, {Contains: "a\nb"}} {
		_, err := s.locks.Locks(s.ctx, q)
		s.expectError(err, lock.ErrInvalid)
	}
}
