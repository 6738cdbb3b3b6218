package locktest

import (
	"slices"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func queueCases() cases {
	return cases{
		"a wait that times out is refused":                      queueTimeout,
		"a waiting acquire of a held lease is replayed at once": queueReplay,
		"a lease from the queue starts at the grant":            queueBegins,
		"waiters of different locks are independent":            queueOthers,
		"a cancelled waiter leaves the queue":                   queueLeft,
		"waiters are shown in order with their request":         queueViewOrder,
		"the first waiter is shown with the conflicting leases": queueViewLeases,
		"a waiter is shown with what blocks it at other locks":  queueViewElsewhere,
		"a queue shows the chain to its root":                   queueViewChain,
	}
}

func queueTimeout(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	s.enqueue(lock.Acquire{Holder: "second"})
	before := time.Now()
	_, err := s.acquire(lock.Acquire{Holder: "third", Wait: 3 * shortTTL})
	e := s.expectError(err, lock.ErrHeld)
	if e.Holder != "first" || e.Newest != first.Token || e.Ahead != 1 || e.KeptFor != 0 || e.RetryAfter <= 0 || e.RetryAfter > longTTL {
		s.Errorf("the refusal is %+v", e)
	}
	if took := time.Since(before); took < 3*shortTTL-tolerance {
		s.Errorf("a wait of %v ended after %v", 3*shortTTL, took)
	}
	s.expectQueue("second")
	events := s.events(s.name, 4)
	if queued, left := events[2], events[3]; queued.Kind != lock.Queued || left.Kind != lock.Dequeued ||
		queued.Place != 3 || left.Place != 3 || left.Reason == "" || left.Holder != "third" {
		s.Errorf("joining and leaving have the events %+v and %+v", queued, left)
	}
}

func queueReplay(s *fixture) {
	first := s.mustAcquire(lock.Acquire{Wait: lock.MaxWait})
	s.enqueue(lock.Acquire{Holder: "second"})
	again := s.mustAcquire(lock.Acquire{LeaseID: first.ID, Wait: lock.MaxWait})
	if !again.Replayed || again.Token != first.Token {
		s.Errorf("the lease %+v was replayed as %+v", first, again)
	}
}

func queueBegins(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueue(lock.Acquire{Holder: "second", MaxHold: longTTL + time.Minute, Metadata: []byte(`{"a":1}`)})
	s.eventually("the call has waited", func() bool { return s.queue(s.name).Waiters[0].Waited > shortTTL })
	s.must(s.release(first))
	g := w.mustBeGranted()
	after := time.Now()
	if !isNear(g.ExpiresAt, g.AcquiredAt.Add(longTTL)) || g.MaxHold != longTTL+time.Minute || !sameJSON(g.Metadata, w.request.Metadata) {
		s.Errorf("the call %+v was granted %+v", w.request, g.Lease)
	}
	if latest := after.Add(longTTL); g.Until.After(latest) {
		s.Errorf("Until is %v later than the lease's end can be", g.Until.Sub(latest))
	}
	if earliest := w.began.Add(longTTL - after.Sub(w.began) - tolerance); g.Until.Before(earliest) {
		s.Errorf("Until is %v after the call began, which took %v", g.Until.Sub(w.began), after.Sub(w.began))
	}
}

func queueOthers(s *fixture) {
	one, two := s.hold(1, "holder"), s.hold(2, "holder")
	first := s.enqueue(lock.Acquire{Locks: lock.One(one.Name), Holder: "a"})
	second := s.enqueue(lock.Acquire{Locks: lock.One(two.Name), Holder: "a", LeaseID: first.request.LeaseID})
	s.must(s.release(two))
	second.mustBeGranted()
	if q := s.queue(one.Name); len(q.Waiters) != 1 {
		s.Errorf("after another lock's release the queue is %+v", q)
	}
	s.must(s.release(one))
	first.mustBeGranted()
}

func queueLeft(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueueN(3)
	page, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name})
	s.must(err)
	if l := s.get(s.name); l.Waiters != 3 || l.Revision != 4 || len(page.Items) != 1 || page.Items[0].Waiters != 3 {
		s.Errorf("with three waiters the lock is %+v, and listed as %+v", l, page.Items)
	}
	w[1].cancelAndWait()
	s.awaitQueue("waiter 1", "waiter 3")
	s.expectNoSecret([]any{s.queue(s.name), s.get(s.name), s.events(s.name, 5)}, first.ID, w[0].request.LeaseID, w[1].request.LeaseID)
	s.must(s.release(first))
	s.must(s.release(w[0].mustBeGranted()))
	g := w[2].mustBeGranted()
	s.must(s.release(g))
	passed := verify.Rules{Away: func(e lock.Event) bool { return e.Holder == "waiter 2" }}
	events := s.verifyHistory(s.name, passed)
	if left := events[4]; left.Kind != lock.Dequeued || left.Place != 3 || left.Reason == "" || left.Token != 0 || left.Holder != "waiter 2" {
		s.Errorf("leaving has the event %+v", left)
	}
	if last := events[len(events)-2]; last.Kind != lock.Granted || last.Place != 4 || last.Token != g.Token {
		s.Errorf("the last grant has the event %+v", last)
	}
}

func queueViewOrder(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	want := []lock.WaiterInfo{
		{Holder: "exclusive", Mode: lock.Exclusive, BlockedBy: lock.BlockedByHolders},
		{Holder: "reader & <b>", Mode: lock.Shared, BlockedBy: lock.BlockedByQueue},
		{Holder: "permit", Mode: lock.Permit, Capacity: threePermits, BlockedBy: lock.BlockedByQueue},
	}
	for _, w := range want {
		s.enqueue(lock.Acquire{Locks: []lock.Member{{Name: s.name, Mode: w.Mode, Capacity: w.Capacity}}, Holder: w.Holder})
	}
	q, events := s.queue(s.name), s.events(s.name, 4)
	if q.Revision != 4 || len(q.Waiters) != 3 {
		s.Fatalf("the queue is %+v", q)
	}
	for i, got := range q.Waiters {
		if w := want[i]; got.Position != i+1 || got.Place != int64(i+2) || got.Ahead != i || !got.Attached || got.KeptFor != 0 ||
			got.Holder != w.Holder || got.Mode != w.Mode || got.Capacity != w.Capacity || got.BlockedBy != w.BlockedBy {
			s.Errorf("position %d is shown as %+v", i+1, got)
		}
		if joined := events[i+1]; !isNear(got.JoinedAt, joined.At) || joined.Place != got.Place ||
			joined.Holder != got.Holder {
			s.Errorf("%+v has the event %+v", got, joined)
		}
		if waited := q.AsOf.Sub(got.JoinedAt); (got.Waited - waited).Abs() > 2*time.Millisecond {
			s.Errorf("between %v and %v the waiter waited for %v: %+v", got.JoinedAt, q.AsOf, got.Waited, got)
		}
	}
}

func queueViewLeases(s *fixture) {
	g := s.mustAcquirePermits(threePermits)
	s.enqueue(lock.Acquire{Locks: s.permit(threePermits), Holder: "permit"})
	s.enqueue(lock.Acquire{Holder: "exclusive"})
	q := s.queue(s.name).Waiters
	if len(q) != 2 || len(q[0].Leases) != threePermits || len(q[1].Leases) != 0 {
		s.Fatalf("the queue is %+v", q)
	}
	for i, h := range q[0].Leases {
		if h.Holder != g[i].Holder || h.Slot != g[i].Slot || h.Token != g[i].Token || h.Mode != lock.Permit ||
			!isNear(h.ExpiresAt, g[i].ExpiresAt) || h.Remaining <= 0 || h.Remaining > longTTL {
			s.Errorf("the first waits for %+v, shown as %+v", g[i].Lease, h)
		}
	}
}

// queueViewElsewhere: in a tree a reader holds a lock, a writer waits for the root, and others wait below: for the
// lock, which is free, behind the writer above; and below the reader. A set waits for a lock outside of the tree.
func queueViewElsewhere(s *fixture) {
	s.tree()
	s.holdIn("src", lock.Shared)
	outside := s.mustAcquire(lock.Acquire{Locks: lock.One(s.name + "-outside"), Holder: "outside"})
	s.enqueue(lock.Acquire{Locks: lock.One(s.in("src:a")), Holder: "below"})
	s.enqueue(lock.Acquire{Locks: lock.One(s.name), Holder: "all"})
	s.enqueue(lock.Acquire{Locks: lock.One(s.in("doc")), Holder: "behind"})
	s.enqueue(lock.Acquire{Locks: []lock.Member{{Name: s.in("src:b"), Mode: lock.Shared}, {Name: outside.Name}}, Holder: "set"})
	for name, want := range map[string]lock.WaiterInfo{
		s.in("src:a"): {BlockedBy: lock.BlockedByHolders, BlockedAt: s.in("src"), Leases: []lock.LeaseInfo{{Name: s.in("src"), Holder: "src"}}},
		s.in("doc"):   {BlockedBy: lock.BlockedByQueue, BlockedAt: s.name, Ahead: 1},
		s.in("src:b"): {BlockedBy: lock.BlockedByHolders, BlockedAt: outside.Name, Leases: []lock.LeaseInfo{{Name: outside.Name, Holder: "outside"}}},
		outside.Name:  {BlockedBy: lock.BlockedByHolders, Leases: []lock.LeaseInfo{{Holder: "outside"}}},
	} {
		q := s.queue(name).Waiters
		if len(q) != 1 || q[0].BlockedBy != want.BlockedBy || q[0].BlockedAt != want.BlockedAt || q[0].Ahead != want.Ahead ||
			len(q[0].Leases) != len(want.Leases) {
			s.Errorf("the queue of %s is %+v, want %+v", name, q, want)
			continue
		}
		for i, l := range q[0].Leases {
			if l.Name != want.Leases[i].Name || l.Holder != want.Leases[i].Holder {
				s.Errorf("the queue of %s shows the lease %+v, want %+v", name, l, want.Leases[i])
			}
		}
	}
}

// queueViewChain: the holder waits for another lock by its task, whose holder waits for a third one, which is held
// without a task.
func queueViewChain(s *fixture) {
	if q := s.queue(s.other(0)); q.Chain != nil {
		s.Errorf("nothing waits, and the chain is %+v", q.Chain)
	}
	s.holdAs(0, "one")
	s.holdAs(1, "two")
	_, err := s.acquire(lock.Acquire{Locks: lock.One(s.other(2)), Holder: "three"})
	s.must(err)
	s.enqueue(lock.Acquire{Locks: lock.One(s.other(0)), Holder: "waiter"})
	s.expectChain(lock.ChainNotWaiting, lock.DeadlockStep{Name: s.other(0), Holder: "waiter", WaitsFor: "one"})
	s.enqueue(s.ofTask(1, "one.part"))
	s.enqueue(s.ofTask(2, "two.part"))
	s.expectChain(lock.ChainUnknown, lock.DeadlockStep{Name: s.other(0), Holder: "waiter", WaitsFor: "one"},
		lock.DeadlockStep{Name: s.other(1), Holder: "one.part", WaitsFor: "two"},
		lock.DeadlockStep{Name: s.other(2), Holder: "two.part", WaitsFor: "three"})
}

// expectChain expects this chain of the first waiter of the first of the other locks.
func (s *fixture) expectChain(end lock.ChainEnd, steps ...lock.DeadlockStep) {
	s.Helper()
	if c := s.queue(s.other(0)).Chain; c == nil || c.End != end || !slices.Equal(c.Steps, steps) {
		s.Errorf("the chain is %+v, want %+v and %s", c, steps, end)
	}
}
