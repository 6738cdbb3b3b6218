package locktest

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func listCases() cases {
	return cases{
		"an unused lock is free, and not listed":       getUnused,
		"a held lock shows its lease":                  getHeld,
		"public views contain no secret":               getHidesSecrets,
		"a prefix selects names in byte order":         listPrefix,
		"a state selects locks by their current state": listState,
		"a holder selects the locks that it holds now": listHolder,
		"a part of the name selects locks":             listContains,
		"a list of contended locks has the waiters":    listContended,
		"a list is sorted by waiters, age or end":      listSorted,
		"pages have no gaps, no duplicates and an end": listPages,
		"a listed lock equals the lock read alone":     listSame,
	}
}

// names returns the names of the locks on all pages, less their common prefix.
func (s *fixture) names(q paddock.LockQuery) []string {
	s.Helper()
	var names []string
	for {
		page, err := s.locks().Locks(s.ctx, q)
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

func getUnused(s *fixture) {
	l, q := s.get(s.name), s.queue(s.name)
	if l.Name != s.name || l.State != lock.Free || l.Revision != 0 || l.Token != 0 || len(l.Leases) != 0 || l.AsOf.IsZero() || !l.ChangedAt.IsZero() {
		s.Errorf("a lock never used is %+v", l)
	}
	if q.Revision != 0 || len(q.Waiters) != 0 || q.Chain != nil {
		s.Errorf("its queue is %+v", q)
	}
	s.verify(s.name, 1)
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name})
	s.must(err)
	if len(page.Items) != 0 || page.Next != "" {
		s.Errorf("the list is %+v", page)
	}
}

func getHeld(s *fixture) {
	g := s.mustAcquire(lock.Acquire{Holder: "first", Grace: time.Second, Metadata: []byte(`{"a":[1,2]}`)})
	l := s.get(s.name)
	if l.State != lock.Held || l.Token != g.Token || l.Revision != 1 || len(l.Leases) != 1 || !isNear(l.ChangedAt, g.AcquiredAt) || l.AsOf.Before(g.AcquiredAt) {
		s.Fatalf("the lock is %+v", l)
	}
	h := l.Leases[0]
	if h.Slot != 0 || h.Mode != lock.Exclusive || h.Holder != "first" || h.Token != g.Token || h.Grace != time.Second ||
		!isNear(h.AcquiredAt, g.AcquiredAt) || !isNear(h.ExpiresAt, g.ExpiresAt) || !sameJSON(h.Metadata, g.Metadata) {
		s.Errorf("the lease %+v is shown as %+v", g.Lease, h)
	}
	if want := h.ExpiresAt.Sub(l.AsOf); (h.Remaining - want).Abs() > 2*time.Millisecond {
		s.Errorf("%v remain, want the %v between the instants", h.Remaining, want)
	}
}

func getHidesSecrets(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	replaced := s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + ":b")})
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name})
	s.must(err)
	s.expectNoSecret([]any{page, s.get(s.name), s.events(s.name, 1), s.events(s.name+":b", 2)}, g.ID, replaced.ID)
}

// expectNoSecret ends the test if a public view contains one of the lease_ids.
func (s *fixture) expectNoSecret(shown []any, ids ...lock.LeaseID) {
	s.Helper()
	seen := fmt.Sprintf("%+v", shown)
	text, err := json.Marshal(shown)
	s.must(err)
	for _, id := range ids {
		for _, secret := range []string{uuid.UUID(id).String(), hex.EncodeToString(id[:]), fmt.Sprintf("%v", [16]byte(id))} {
			if strings.Contains(seen+string(text), secret) {
				s.Errorf("a lease_id is shown in %s", seen)
			}
		}
	}
}

func listPrefix(s *fixture) {
	names := []string{":a", ":b", ":Z", ":a:b", ":a.b", ":a-b", ":a_b", ":a@b", ":10", ":9", "-"}
	for _, n := range names {
		s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + n)})
	}
	slices.Sort(names)
	if diff := cmp.Diff(names, s.names(paddock.LockQuery{Prefix: s.name})); diff != "" {
		s.Errorf("the list differs (-want +got):\n%s", diff)
	}
	below := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return len(n) < 2 || n[:2] != ":a" })
	if diff := cmp.Diff(below, s.names(paddock.LockQuery{Prefix: s.name + ":a"})); diff != "" {
		s.Errorf("the list under :a differs (-want +got):\n%s", diff)
	}
	if got := s.names(paddock.LockQuery{Prefix: s.name + ":a_"}); !slices.Equal(got, []string{":a_b"}) {
		s.Errorf("the list under :a_ is %v: a prefix is not a pattern", got)
	}
}

func listState(s *fixture) {
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":held")})
	s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + ":released")})
	s.acquireAndExpire(lock.Acquire{Locks: lock.One(s.name + ":expired")})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":grace"), TTL: shortTTL, Grace: lock.MaxGrace})
	s.awaitState(s.name+":grace", lock.InGrace)
	for state, want := range map[lock.State][]string{
		lock.Held:    {":held"},
		lock.InGrace: {":grace"},
		lock.Free:    {":expired", ":released"},
		"":           {":expired", ":grace", ":held", ":released"},
	} {
		for _, limit := range []int{0, 1} {
			if got := s.names(paddock.LockQuery{Prefix: s.name, State: state, Limit: limit}); !slices.Equal(got, want) {
				s.Errorf("in state %q with %d a page the list is %v, want %v", state, limit, got, want)
			}
		}
	}
}

func listHolder(s *fixture) {
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":1"), Holder: "me & 'you' %"})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":2"), Holder: "me"})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":3"), Holder: "me & 'you' %", TTL: shortTTL, Grace: lock.MaxGrace})
	s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + ":4"), Holder: "me & 'you' %"})
	s.acquireAndExpire(lock.Acquire{Locks: lock.One(s.name + ":5"), Holder: "me & 'you' %"})
	q := paddock.LockQuery{Prefix: s.name, Holder: "me & 'you' %"}
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
		s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + ":" + string(c))})
		want = append(want, ":"+string(c))
	}
	for limit := range 9 {
		if got := s.names(paddock.LockQuery{Prefix: s.name, Limit: limit}); !slices.Equal(got, want) {
			s.Errorf("%d a page: the list is %v, want %v", limit, got, want)
		}
	}
}

func listSame(s *fixture) {
	s.mustAcquire(lock.Acquire{Metadata: []byte(`{"a":1}`), Grace: shortTTL})
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name})
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

func listContains(s *fixture) {
	for _, n := range []string{":night", ":a_night", ":a@night:b", ":NIGHT", ":nigh"} {
		s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + n)})
	}
	for part, want := range map[string][]string{
		"night": {":a@night:b", ":a_night", ":night"}, "_night": {":a_night"}, "@": {":a@night:b"}, "night:b": {":a@night:b"}, "NI": {":NIGHT"}, "x": nil,
	} {
		if got := s.names(paddock.LockQuery{Prefix: s.name, Contains: part, Limit: 2}); !slices.Equal(got, want) {
			s.Errorf("the locks with %q are %v, want %v", part, got, want)
		}
	}
}

// listContended also checks the order by waiters, of which free locks are no part.
func listContended(s *fixture) {
	s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + ":free")})
	for i, n := range []string{":none", ":one", ":two"} {
		held := s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + n)})
		var waiters []*waitingCall
		for j := range i {
			waiters = append(waiters, s.enqueue(lock.Acquire{Locks: lock.One(s.name + n), Holder: fmt.Sprint("waiter ", j)}))
		}
		defer func() {
			s.must(s.release(held))
			for _, w := range waiters {
				s.must(s.release(w.mustBeGranted()))
			}
		}()
	}
	contended := paddock.LockQuery{Prefix: s.name, Contended: true}
	s.eventually("three waiters are seen", func() bool {
		page, err := s.locks().Locks(s.ctx, contended)
		s.must(err)
		return len(page.Items) == 2 && page.Items[0].Waiters+page.Items[1].Waiters == 3
	})
	for want, q := range map[string]paddock.LockQuery{
		":one:two":      contended,
		":two:one:none": {Prefix: s.name, Sort: paddock.ByWaiters},
		":two:one":      {Prefix: s.name, Sort: paddock.ByWaiters, Limit: 2},
	} {
		if got := strings.Join(s.names(q), ""); got != want {
			s.Errorf("%+v lists %s, want %s", q, got, want)
		}
	}
}

func listSorted(s *fixture) {
	for _, a := range []lock.Acquire{
		{Locks: lock.One(":b"), TTL: 2 * time.Hour}, {Locks: lock.One(":c"), TTL: 3 * time.Hour}, {Locks: lock.One(":a"), TTL: time.Hour},
	} {
		a.Locks = lock.One(s.name + a.Locks[0].Name)
		s.mustAcquire(a)
		s.pass()
	}
	s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + ":free")})
	for order, want := range map[paddock.LockOrder]string{
		paddock.ByName: ":a:b:c:free", paddock.ByAge: ":b:c:a", paddock.ByEnding: ":a:b:c", paddock.ByWaiters: ":a:b:c",
	} {
		if got := strings.Join(s.names(paddock.LockQuery{Prefix: s.name, Sort: order}), ""); got != want {
			s.Errorf("by %q: %s, want %s", order, got, want)
		}
	}
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name, Limit: 1})
	s.must(err)
	s.expectInvalid("the cursor of another order", errOf(s.locks().Locks(s.ctx, paddock.LockQuery{Sort: paddock.ByAge, Cursor: page.Next})), "cursor")
}
