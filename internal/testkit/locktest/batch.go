package locktest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func batchCases() cases {
	return cases{
		"an empty batch has no results": func(s *fixture) { s.batch() },
		"each item has its own result":  batchEach,
		"items on one lock run in order, and a lease that ended in the batch is not granted again": batchOrder,
		"a release promotes the next waiter":                 batchWake,
		"an invalid item is refused by itself":               batchInvalidItems,
		"a batch may have MaxBatch items":                    batchLargest,
		"a batch of more than MaxBatch items is refused":     batchTooMany,
		"of batches racing for 20 locks one is granted each": batchRace,
	}
}

// batch runs the items, and ends the test unless each has a result.
func (s *fixture) batch(items ...lock.Command) []paddock.Result {
	s.Helper()
	results := s.locks().Batch(s.ctx, items)
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
func (s *fixture) mustSucceed(r paddock.Result) lock.Grant {
	s.Helper()
	s.must(r.Err)
	return r.Grant
}

func renewOf(g lock.Grant) lock.Renew { return lock.Renew{Locks: []string{g.Name}, LeaseID: g.ID} }

func releaseOf(g lock.Grant) lock.Release {
	return lock.Release{Locks: []string{g.Name}, LeaseID: g.ID}
}

func batchEach(s *fixture) {
	mine := s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":mine")})
	other := s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + ":other"), Holder: "other"})
	gone := s.acquireAndRelease(lock.Acquire{Locks: lock.One(s.name + ":gone")})
	a := s.complete(lock.Acquire{Locks: lock.One(s.name + ":new"), Metadata: []byte(`{"a":1}`)})
	r := s.batch(
		lock.Renew{Locks: []string{mine.Name}, LeaseID: mine.ID, TTL: 2 * longTTL, Metadata: []byte(`{"b":2}`)}, s.complete(lock.Acquire{Locks: lock.One(other.Name)}), a,
		releaseOf(gone), renewOf(gone), releaseOf(other), lock.Acquire{Locks: lock.One(s.name), Holder: "h", TTL: longTTL},
	)
	if g := s.mustSucceed(r[0]); g.Token != mine.Token || g.Name != mine.Name || g.Replayed || string(g.Metadata) != `{"b":2}` ||
		g.ExpiresAt.Before(mine.ExpiresAt.Add(longTTL-tolerance)) {
		s.Errorf("%+v was renewed as %+v", mine, g)
	}
	if e := s.expectError(r[1].Err, lock.ErrHeld); e.Holder != "other" || e.RetryAfter <= 0 {
		s.Errorf("the refusal is %+v", e)
	}
	g := s.mustSucceed(r[2])
	if g.ID != a.LeaseID || g.Name != a.Locks[0].Name || g.Holder != a.Holder || g.TTL != a.TTL || string(g.Metadata) != `{"a":1}` || g.Replayed {
		s.Errorf("%+v was granted as %+v", a, g)
	}
	if left := time.Until(g.Until); left <= 0 || left > longTTL {
		s.Errorf("the grant is valid for %v of %v", left, longTTL)
	}
	s.mustSucceed(r[3])
	s.expectLost(r[4].Err, lock.Released)
	s.mustSucceed(r[5])
	if g := s.mustSucceed(r[6]); g.ID == (lock.LeaseID{}) {
		s.Errorf("an acquire without lease_id was granted %+v", g)
	}
	if l := s.get(other.Name); l.State != lock.Free {
		s.Errorf("after its release the lock is %+v", l)
	}
}

// batchOrder repeats an acquire in the same batch: before the end of its lease, and after it, as a duplicate that arrives
// late.
func batchOrder(s *fixture) {
	first, second := s.complete(lock.Acquire{}), s.complete(lock.Acquire{Holder: "second"})
	mine := lock.Grant{Lease: lock.Lease{Name: s.name, ID: first.LeaseID}}
	r := s.batch(renewOf(mine), first, first, second, renewOf(mine), releaseOf(mine), first, second, renewOf(mine), releaseOf(mine))
	s.expectLost(r[0].Err, 0)
	g := s.mustSucceed(r[1])
	if again := s.mustSucceed(r[2]); g.Replayed || !again.Replayed || again.Token != g.Token {
		s.Errorf("one acquire was granted as %+v and %+v", g, again)
	}
	if e := s.expectError(r[3].Err, lock.ErrHeld); e.Holder != "first" {
		s.Errorf("the refusal is %+v", e)
	}
	s.mustSucceed(r[4])
	s.mustSucceed(r[5])
	s.expectLost(r[6].Err, lock.Released)
	if next := s.mustSucceed(r[7]); next.Token <= g.Token || next.Replayed {
		s.Errorf("after token %d was granted %+v", g.Token, next)
	}
	s.expectLost(r[8].Err, lock.Released)
	s.mustSucceed(r[9])
	s.expectLost(s.batch(first)[0].Err, lock.Released)
	s.expectHolders("second")
	s.expectNoGaps(s.events(s.name, 3))
}

func batchWake(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	second, third := s.enqueue(lock.Acquire{Holder: "second"}), s.enqueue(lock.Acquire{Holder: "third"})
	s.mustSucceed(s.batch(s.complete(lock.Acquire{Locks: lock.One(s.name + ":x")}), releaseOf(first))[1])
	g := second.mustBeGranted()
	s.mustSucceed(s.batch(releaseOf(g), s.complete(lock.Acquire{Locks: lock.One(s.name + ":y")}))[0])
	s.must(s.release(third.mustBeGranted()))
	s.verifyHistory(s.name, verify.Rules{})
}

func batchInvalidItems(s *fixture) {
	held, a := s.mustAcquire(lock.Acquire{Locks: lock.One(s.other(1))}), s.complete(lock.Acquire{})
	waiting, keeping := a, a
	waiting.Wait, keeping.KeepPlace = time.Second, true
	items := []struct {
		item  lock.Command
		field string
	}{
		{waiting, "wait_ms"},
		{keeping, "keep_place"},
		{lock.Revoke{Name: held.Name, Token: held.Token, Reason: testReason}, ""},
		{nil, ""},
		{s.complete(lock.Acquire{Locks: s.set(3, 4)}), "locks"},
		{lock.Renew{Locks: s.others(3, 4), LeaseID: held.ID}, "names"},
		{s.complete(lock.Acquire{Locks: lock.One("a/b")}), "name"},
		{s.complete(lock.Acquire{TTL: 1}), "ttl_ms"},
		{lock.Renew{Locks: []string{held.Name}, LeaseID: held.ID, TTL: -1}, "ttl_ms"},
		{lock.Renew{Locks: []string{s.name}}, "lease_id"},
	}
	results := s.batch(append(many(len(items), func(i int) lock.Command { return items[i].item }), renewOf(held))...)
	for i, c := range items {
		s.expectInvalid(c.item, results[i].Err, c.field)
	}
	s.mustSucceed(results[len(items)])
	if l := s.get(s.name); l.Revision != 0 {
		s.Errorf("a refused item changed the lock: %+v", l)
	}
}

// many returns n items.
func many(n int, item func(i int) lock.Command) []lock.Command {
	items := make([]lock.Command, n)
	for i := range items {
		items[i] = item(i)
	}
	return items
}

func batchLargest(s *fixture) {
	r := s.batch(many(paddock.MaxBatch, func(i int) lock.Command {
		return s.complete(lock.Acquire{Locks: lock.One(fmt.Sprintf("%s:%d", s.name, i))})
	})...)
	tokens := map[lock.Token]bool{}
	for i := range r {
		g := s.mustSucceed(r[i])
		if g.Name != fmt.Sprintf("%s:%d", s.name, i) || tokens[g.Token] {
			s.Fatalf("item %d was granted %+v", i, g)
		}
		tokens[g.Token] = true
	}
	for i, renewed := range s.batch(many(len(r), func(i int) lock.Command { return renewOf(r[i].Grant) })...) {
		if g := s.mustSucceed(renewed); g.Token != r[i].Grant.Token {
			s.Fatalf("%+v was renewed as %+v", r[i].Grant, g)
		}
	}
	for _, released := range s.batch(many(len(r), func(i int) lock.Command { return releaseOf(r[i].Grant) })...) {
		s.mustSucceed(released)
	}
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name, State: lock.Held})
	s.must(err)
	if len(page.Items) != 0 {
		s.Errorf("still held: %+v", page.Items)
	}
}

func batchTooMany(s *fixture) {
	for _, r := range s.batch(many(paddock.MaxBatch+1, func(int) lock.Command { return s.complete(lock.Acquire{}) })...) {
		s.expectInvalid("an item", r.Err, "items")
	}
	if l := s.get(s.name); l.Revision != 0 {
		s.Errorf("the lock is %+v", l)
	}
}

func batchRace(s *fixture) {
	const locks, contenders = 20, 10
	var granted [locks]atomic.Int32
	concurrently(contenders, func(i int) {
		order := rand.Perm(locks)
		results := s.locks().Batch(s.ctx, many(locks, func(n int) lock.Command {
			return s.complete(
				lock.Acquire{Locks: lock.One(fmt.Sprintf("%s:%d", s.name, order[n])), Holder: fmt.Sprint("contender ", i)},
			)
		}))
		for n, r := range results {
			if r.Err == nil {
				granted[order[n]].Add(1)
			} else if !errors.Is(r.Err, lock.ErrHeld) {
				s.Error(r.Err)
			}
		}
	})
	for i := range granted {
		if n := granted[i].Load(); n != 1 {
			s.Errorf("lock %d was granted %d times", i, n)
		}
	}
}
