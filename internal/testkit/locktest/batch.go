package locktest

import (
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func batching() cases {
	return cases{
		"a batch of nothing has no results":                    batchNone,
		"each item has its own result":                         batchEach,
		"items on one lock are done in their order":            batchOrder,
		"the same acquire twice is one lease":                  batchReplay,
		"a lease that has ended in it is not granted again":    batchEnded,
		"an acquire without lease_id is given one":             batchAnonymous,
		"readers and permits are granted together":             batchTogether,
		"a renewal brings other metadata":                      batchProclaim,
		"a release hands the lock to who waits":                batchWake,
		"an acquire never overtakes a waiter":                  batchTry,
		"what may be no item is refused alone":                 batchForeign,
		"an item beyond its bounds is refused alone":           batchBounds,
		"there are as many items as may be":                    batchMost,
		"of more items than may be none is done":               batchTooMany,
		"a context that is over has no item done":              batchOver,
		"of batches that meet on 20 locks one has each":        batchRace,
		"batches in whatever order keep the rules of the lock": batchCross,
	}
}

// batch does the items, and ends the test unless there are as many results.
func (s *scene) batch(items ...lock.Command) []lock.Result {
	s.Helper()
	results := s.locks.Batch(s.ctx, items)
	if len(results) != len(items) {
		s.Fatalf("%d items have %d results", len(items), len(results))
	}
	for i, r := range results {
		if r.Err != nil && r.Grant.ID != (lock.LeaseID{}) {
			s.Errorf("item %d was refused with %v and granted %+v", i, r.Err, r.Grant)
		}
	}
	return results
}

// had ends the test unless the item was granted or done, and returns its grant.
func (s *scene) had(r lock.Result) lock.Grant {
	s.Helper()
	s.must(r.Err)
	return r.Grant
}

func renewal(g lock.Grant) lock.Renew { return lock.Renew{Name: g.Name, LeaseID: g.ID} }

func giveUp(g lock.Grant) lock.Release { return lock.Release{Name: g.Name, LeaseID: g.ID} }

func batchNone(s *scene) {
	s.batch()
}

func batchEach(s *scene) {
	mine := s.granted(lock.Acquire{Name: s.name + ":mine"})
	other := s.granted(lock.Acquire{Name: s.name + ":other", Holder: "other"})
	gone := s.released(lock.Acquire{Name: s.name + ":gone"})
	a := s.complete(lock.Acquire{Name: s.name + ":new", Metadata: []byte(`{"a":1}`)})
	r := s.batch(
		lock.Renew{Name: mine.Name, LeaseID: mine.ID, TTL: 2 * alive}, s.complete(lock.Acquire{Name: other.Name}), a,
		giveUp(gone), renewal(gone), giveUp(other),
	)
	if g := s.had(r[0]); g.Token != mine.Token || g.Name != mine.Name || g.Replayed || g.ExpiresAt.Before(mine.ExpiresAt.Add(alive-lateness)) {
		s.Errorf("%+v was renewed as %+v", mine, g)
	}
	if e := s.refused(r[1].Err, lock.ErrHeld); e.Holder != "other" || e.RetryAfter <= 0 {
		s.Errorf("the refusal is %+v", e)
	}
	g := s.had(r[2])
	if g.ID != a.LeaseID || g.Name != a.Name || g.Holder != a.Holder || g.TTL != a.TTL || string(g.Metadata) != `{"a":1}` || g.Replayed {
		s.Errorf("%+v was granted as %+v", a, g)
	}
	if left := time.Until(g.Until); left <= 0 || left > alive {
		s.Errorf("the grant is good for %v of %v", left, alive)
	}
	s.had(r[3])
	s.lost(r[4].Err, lock.Released)
	s.had(r[5])
	if l := s.look(other.Name); l.State != lock.Free {
		s.Errorf("after its release the lock is %+v", l)
	}
}

func batchOrder(s *scene) {
	first, second := s.complete(lock.Acquire{}), s.complete(lock.Acquire{Holder: "second"})
	mine := lock.Grant{Lease: lock.Lease{Name: s.name, ID: first.LeaseID}}
	r := s.batch(renewal(mine), first, second, renewal(mine), giveUp(mine), second, renewal(mine), giveUp(mine))
	s.lost(r[0].Err, 0)
	g := s.had(r[1])
	if e := s.refused(r[2].Err, lock.ErrHeld); e.Holder != "first" {
		s.Errorf("the refusal is %+v", e)
	}
	s.had(r[3])
	s.had(r[4])
	if next := s.had(r[5]); next.Token <= g.Token || next.Replayed {
		s.Errorf("after token %d was granted %+v", g.Token, next)
	}
	s.lost(r[6].Err, lock.Released)
	s.had(r[7])
	s.held("second")
	s.gapless(s.recorded(s.name, 3))
}

func batchReplay(s *scene) {
	a := s.complete(lock.Acquire{})
	r := s.batch(a, a)
	first, again := s.had(r[0]), s.had(r[1])
	if first.Replayed || !again.Replayed || again.Token != first.Token {
		s.Errorf("one acquire was granted as %+v and %+v", first, again)
	}
	if later := s.had(s.batch(a)[0]); !later.Replayed || later.Token != first.Token {
		s.Errorf("the lease %+v was asked for again and is %+v", first, later)
	}
	s.recorded(s.name, 1)
}

// batchEnded has a lease end and be asked for again at once: by the call that was granted it,
// which comes a second time and late.
func batchEnded(s *scene) {
	a := s.complete(lock.Acquire{})
	g := s.granted(a)
	r := s.batch(giveUp(g), a)
	s.had(r[0])
	s.lost(r[1].Err, lock.Released)
	b := s.complete(lock.Acquire{})
	g = lock.Grant{Lease: lock.Lease{Name: s.name, ID: b.LeaseID}}
	r = s.batch(b, giveUp(g), b, a)
	s.had(r[0])
	s.had(r[1])
	s.lost(r[2].Err, lock.Released)
	s.lost(r[3].Err, lock.Released)
	s.held()
	s.gapless(s.recorded(s.name, 4))
}

func batchAnonymous(s *scene) {
	g := s.had(s.batch(lock.Acquire{Name: s.name, Holder: "h", TTL: alive})[0])
	if g.ID == (lock.LeaseID{}) {
		s.Errorf("the grant is %+v", g)
	}
	s.had(s.batch(giveUp(g))[0])
}

func batchTogether(s *scene) {
	read := func(name string) lock.Acquire { return s.complete(lock.Acquire{Name: name, Mode: lock.Shared}) }
	permit := func() lock.Acquire {
		return s.complete(lock.Acquire{Name: s.name + ":p", Mode: lock.Permit, Capacity: 2})
	}
	r := s.batch(read(s.name), permit(), read(s.name), permit(), permit(), s.complete(lock.Acquire{}))
	if one, two := s.had(r[0]), s.had(r[2]); one.Token != two.Token || one.Slot == two.Slot {
		s.Errorf("two readers have %+v and %+v", one, two)
	}
	if one, two := s.had(r[1]), s.had(r[3]); one.Token >= two.Token || one.Slot == two.Slot {
		s.Errorf("two permits are %+v and %+v", one, two)
	}
	s.refused(r[4].Err, lock.ErrHeld)
	s.refused(r[5].Err, lock.ErrHeld)
}

func batchProclaim(s *scene) {
	g := s.granted(lock.Acquire{})
	r := s.batch(lock.Renew{Name: g.Name, LeaseID: g.ID, Metadata: []byte(`{"b":2}`)})
	if renewed := s.had(r[0]); string(renewed.Metadata) != `{"b":2}` {
		s.Errorf("the lease is %+v", renewed)
	}
	if got := kinds(s.recorded(s.name, 2)); got[1] != lock.MetadataUpdated {
		s.Errorf("the events are %v", got)
	}
}

func batchWake(s *scene) {
	first := s.granted(lock.Acquire{})
	second, third := s.joins(lock.Acquire{Holder: "second"}), s.joins(lock.Acquire{Holder: "third"})
	s.had(s.batch(s.complete(lock.Acquire{Name: s.name + ":x"}), giveUp(first))[1])
	g := second.has()
	s.had(s.batch(giveUp(g), s.complete(lock.Acquire{Name: s.name + ":y"}))[0])
	s.must(s.release(third.has()))
	s.proven(s.name, verify.Rules{})
}

func batchTry(s *scene) {
	first := s.granted(lock.Acquire{})
	w := s.joins(lock.Acquire{Holder: "waiter"})
	r := s.batch(giveUp(first), s.complete(lock.Acquire{Holder: "a try"}))
	s.had(r[0])
	s.refused(r[1].Err, lock.ErrHeld)
	s.must(s.release(w.has()))
	s.proven(s.name, verify.Rules{})
}

func batchForeign(s *scene) {
	held := s.granted(lock.Acquire{Name: s.name + ":held"})
	a := s.complete(lock.Acquire{})
	waiting, keeping := a, a
	waiting.Wait, keeping.KeepPlace = time.Second, true
	r := s.batch(
		waiting, lock.Revoke{Name: held.Name, Token: held.Token, Reason: theReason}, keeping, nil, lock.Sweep{Name: held.Name}, &a,
		renewal(held),
	)
	for i, field := range []string{"wait_ms", "", "keep_place", "", "", ""} {
		s.atFault(fmt.Sprint("item ", i), r[i].Err, field)
	}
	s.had(r[6])
	if l := s.look(s.name); l.Revision != 0 {
		s.Errorf("a refused item changed the lock: %+v", l)
	}
}

func batchBounds(s *scene) {
	g := s.granted(lock.Acquire{})
	r := s.batch(
		s.complete(lock.Acquire{Name: "a/b"}), lock.Acquire{Name: s.name + ":x", TTL: alive}, s.complete(lock.Acquire{TTL: 1}),
		lock.Renew{Name: s.name}, lock.Renew{Name: s.name, LeaseID: g.ID, TTL: -1}, lock.Release{Name: "-", LeaseID: g.ID}, lock.Release{Name: s.name},
		s.complete(lock.Acquire{Metadata: []byte(`[]`)}), renewal(g),
	)
	for i, field := range []string{"name", "holder", "ttl_ms", "lease_id", "ttl_ms", "name", "lease_id", "metadata"} {
		s.atFault(fmt.Sprint("item ", i), r[i].Err, field)
	}
	s.had(r[8])
}

func batchOver(s *scene) {
	g := s.granted(lock.Acquire{})
	for _, r := range s.locks.Batch(over(), []lock.Command{giveUp(g), s.complete(lock.Acquire{Name: s.name + ":x"}), renewal(g)}) {
		s.refused(r.Err, lock.ErrUnavailable)
	}
	if l := s.look(s.name); l.Revision != 1 || !near(l.Leases[0].ExpiresAt, g.ExpiresAt) {
		s.Errorf("the lock is %+v", l)
	}
}
