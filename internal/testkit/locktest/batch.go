package locktest

import (
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func batchCases() cases {
	return cases{
		"an empty batch has no results":                        batchNone,
		"each item has its own result":                         batchEach,
		"items on one lock run in order":                       batchOrder,
		"the same acquire twice is one lease":                  batchReplay,
		"a lease that ended in the batch is not granted again": batchEnded,
		"an acquire without lease_id gets one":                 batchAnonymous,
		"compatible leases are granted in one batch":           batchCompatible,
		"a renewal replaces the metadata":                      batchMetadata,
		"a release promotes the next waiter":                   batchWake,
		"an acquire never passes a waiter":                     batchTry,
		"an invalid item is refused by itself":                 batchInvalidItems,
		"an item out of bounds is refused by itself":           batchBounds,
		"a batch may have MaxBatch items":                      batchLargest,
		"a batch of more than MaxBatch items is refused":       batchTooMany,
		"a cancelled context runs no item":                     batchCancelled,
		"of batches racing for 20 locks one is granted each":   batchRace,
		"batches in random order keep the rules of the lock":   batchCross,
	}
}

// batch runs the items, and ends the test unless each has a result.
func (s *fixture) batch(items ...lock.Command) []lock.Result {
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

// mustSucceed ends the test unless the item succeeded, and returns its grant.
func (s *fixture) mustSucceed(r lock.Result) lock.Grant {
	s.Helper()
	s.must(r.Err)
	return r.Grant
}

func renewOf(g lock.Grant) lock.Renew { return lock.Renew{Name: g.Name, LeaseID: g.ID} }

func releaseOf(g lock.Grant) lock.Release { return lock.Release{Name: g.Name, LeaseID: g.ID} }

func batchNone(s *fixture) {
	s.batch()
}

func batchEach(s *fixture) {
	mine := s.mustAcquire(lock.Acquire{Name: s.name + ":mine"})
	other := s.mustAcquire(lock.Acquire{Name: s.name + ":other", Holder: "other"})
	gone := s.acquireAndRelease(lock.Acquire{Name: s.name + ":gone"})
	a := s.complete(lock.Acquire{Name: s.name + ":new", Metadata: []byte(`{"a":1}`)})
	r := s.batch(
		lock.Renew{Name: mine.Name, LeaseID: mine.ID, TTL: 2 * longTTL}, s.complete(lock.Acquire{Name: other.Name}), a,
		releaseOf(gone), renewOf(gone), releaseOf(other),
	)
	if g := s.mustSucceed(r[0]); g.Token != mine.Token || g.Name != mine.Name || g.Replayed ||
		g.ExpiresAt.Before(mine.ExpiresAt.Add(longTTL-tolerance)) {
		s.Errorf("%+v was renewed as %+v", mine, g)
	}
	if e := s.expectError(r[1].Err, lock.ErrHeld); e.Holder != "other" || e.RetryAfter <= 0 {
		s.Errorf("the refusal is %+v", e)
	}
	g := s.mustSucceed(r[2])
	if g.ID != a.LeaseID || g.Name != a.Name || g.Holder != a.Holder || g.TTL != a.TTL ||
		string(g.Metadata) != `{"a":1}` ||
		g.Replayed {
		s.Errorf("%+v was granted as %+v", a, g)
	}
	if left := time.Until(g.Until); left <= 0 || left > longTTL {
		s.Errorf("the grant is valid for %v of %v", left, longTTL)
	}
	s.mustSucceed(r[3])
	s.expectLost(r[4].Err, lock.Released)
	s.mustSucceed(r[5])
	if l := s.get(other.Name); l.State != lock.Free {
		s.Errorf("after its release the lock is %+v", l)
	}
}

func batchOrder(s *fixture) {
	first, second := s.complete(lock.Acquire{}), s.complete(lock.Acquire{Holder: "second"})
	mine := lock.Grant{Lease: lock.Lease{Name: s.name, ID: first.LeaseID}}
	r := s.batch(renewOf(mine), first, second, renewOf(mine), releaseOf(mine), second, renewOf(mine), releaseOf(mine))
	s.expectLost(r[0].Err, 0)
	g := s.mustSucceed(r[1])
	if e := s.expectError(r[2].Err, lock.ErrHeld); e.Holder != "first" {
		s.Errorf("the refusal is %+v", e)
	}
	s.mustSucceed(r[3])
	s.mustSucceed(r[4])
	if next := s.mustSucceed(r[5]); next.Token <= g.Token || next.Replayed {
		s.Errorf("after token %d was granted %+v", g.Token, next)
	}
	s.expectLost(r[6].Err, lock.Released)
	s.mustSucceed(r[7])
	s.expectHolders("second")
	s.expectNoGaps(s.events(s.name, 3))
}

func batchReplay(s *fixture) {
	a := s.complete(lock.Acquire{})
	r := s.batch(a, a)
	first, again := s.mustSucceed(r[0]), s.mustSucceed(r[1])
	if first.Replayed || !again.Replayed || again.Token != first.Token {
		s.Errorf("one acquire was granted as %+v and %+v", first, again)
	}
	if later := s.mustSucceed(s.batch(a)[0]); !later.Replayed || later.Token != first.Token {
		s.Errorf("the lease %+v was asked for again and is %+v", first, later)
	}
	s.events(s.name, 1)
}

// batchEnded ends a lease and repeats its acquire in the same batch, as a duplicate that arrives late.
func batchEnded(s *fixture) {
	a := s.complete(lock.Acquire{})
	g := s.mustAcquire(a)
	r := s.batch(releaseOf(g), a)
	s.mustSucceed(r[0])
	s.expectLost(r[1].Err, lock.Released)
	b := s.complete(lock.Acquire{})
	g = lock.Grant{Lease: lock.Lease{Name: s.name, ID: b.LeaseID}}
	r = s.batch(b, releaseOf(g), b, a)
	s.mustSucceed(r[0])
	s.mustSucceed(r[1])
	s.expectLost(r[2].Err, lock.Released)
	s.expectLost(r[3].Err, lock.Released)
	s.expectHolders()
	s.expectNoGaps(s.events(s.name, 4))
}

func batchAnonymous(s *fixture) {
	g := s.mustSucceed(s.batch(lock.Acquire{Name: s.name, Holder: "h", TTL: longTTL})[0])
	if g.ID == (lock.LeaseID{}) {
		s.Errorf("the grant is %+v", g)
	}
	s.mustSucceed(s.batch(releaseOf(g))[0])
}

func batchCompatible(s *fixture) {
	read := func(name string) lock.Acquire { return s.complete(lock.Acquire{Name: name, Mode: lock.Shared}) }
	permit := func() lock.Acquire {
		return s.complete(lock.Acquire{Name: s.name + ":p", Mode: lock.Permit, Capacity: 2})
	}
	r := s.batch(read(s.name), permit(), read(s.name), permit(), permit(), s.complete(lock.Acquire{}))
	if one, two := s.mustSucceed(r[0]), s.mustSucceed(r[2]); one.Token != two.Token || one.Slot == two.Slot {
		s.Errorf("two readers have %+v and %+v", one, two)
	}
	if one, two := s.mustSucceed(r[1]), s.mustSucceed(r[3]); one.Token >= two.Token || one.Slot == two.Slot {
		s.Errorf("two permits are %+v and %+v", one, two)
	}
	s.expectError(r[4].Err, lock.ErrHeld)
	s.expectError(r[5].Err, lock.ErrHeld)
}

func batchMetadata(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	r := s.batch(lock.Renew{Name: g.Name, LeaseID: g.ID, Metadata: []byte(`{"b":2}`)})
	if renewed := s.mustSucceed(r[0]); string(renewed.Metadata) != `{"b":2}` {
		s.Errorf("the lease is %+v", renewed)
	}
	if got := kinds(s.events(s.name, 2)); got[1] != lock.MetadataUpdated {
		s.Errorf("the events are %v", got)
	}
}

func batchWake(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	second, third := s.enqueue(lock.Acquire{Holder: "second"}), s.enqueue(lock.Acquire{Holder: "third"})
	s.mustSucceed(s.batch(s.complete(lock.Acquire{Name: s.name + ":x"}), releaseOf(first))[1])
	g := second.mustBeGranted()
	s.mustSucceed(s.batch(releaseOf(g), s.complete(lock.Acquire{Name: s.name + ":y"}))[0])
	s.must(s.release(third.mustBeGranted()))
	s.verifyHistory(s.name, verify.Rules{})
}

func batchTry(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueue(lock.Acquire{Holder: "waiter"})
	r := s.batch(releaseOf(first), s.complete(lock.Acquire{Holder: "a try"}))
	s.mustSucceed(r[0])
	s.expectError(r[1].Err, lock.ErrHeld)
	s.must(s.release(w.mustBeGranted()))
	s.verifyHistory(s.name, verify.Rules{})
}

func batchInvalidItems(s *fixture) {
	held := s.mustAcquire(lock.Acquire{Name: s.name + ":held"})
	a := s.complete(lock.Acquire{})
	waiting, keeping := a, a
	waiting.Wait, keeping.KeepPlace = time.Second, true
	r := s.batch(
		waiting,
		lock.Revoke{Name: held.Name, Token: held.Token, Reason: testReason},
		keeping,
		nil,
		lock.Sweep{Locks: []string{held.Name}},
		&a,
		renewOf(held),
	)
	for i, field := range []string{"wait_ms", "", "keep_place", "", "", ""} {
		s.expectInvalid(fmt.Sprint("item ", i), r[i].Err, field)
	}
	s.mustSucceed(r[6])
	if l := s.get(s.name); l.Revision != 0 {
		s.Errorf("a refused item changed the lock: %+v", l)
	}
}

func batchBounds(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	r := s.batch(
		s.complete(
			lock.Acquire{Name: "a/b"},
		),
		lock.Acquire{Name: s.name + ":x", TTL: longTTL},
		s.complete(lock.Acquire{TTL: 1}),
		lock.Renew{
			Name: s.name,
		},
		lock.Renew{Name: s.name, LeaseID: g.ID, TTL: -1},
		lock.Release{Name: "-", LeaseID: g.ID},
		lock.Release{Name: s.name},
		s.complete(lock.Acquire{Metadata: []byte(`[]`)}),
		renewOf(g),
	)
	for i, field := range []string{"name", "holder", "ttl_ms", "lease_id", "ttl_ms", "name", "lease_id", "metadata"} {
		s.expectInvalid(fmt.Sprint("item ", i), r[i].Err, field)
	}
	s.mustSucceed(r[8])
}

func batchCancelled(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for _, r := range s.locks.Batch(cancelledContext(), []lock.Command{releaseOf(g), s.complete(lock.Acquire{Name: s.name + ":x"}), renewOf(g)}) {
		s.expectError(r.Err, lock.ErrUnavailable)
	}
	if l := s.get(s.name); l.Revision != 1 || !isNear(l.Leases[0].ExpiresAt, g.ExpiresAt) {
		s.Errorf("the lock is %+v", l)
	}
}
