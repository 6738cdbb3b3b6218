package locktest

import (
	"fmt"
	"slices"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func queueViewCases() cases {
	return cases{
		"an unused lock has an empty queue":                     queueViewUnused,
		"waiters are shown in order with their request":         queueViewOrder,
		"the first waiter is shown with the conflicting leases": queueViewLeases,
		"a detached waiter is shown as detached":                queueViewKeptPlace,
		"the lock shows the number of waiters":                  queueViewCount,
		"a waiter is shown with what blocks it at other locks":  queueViewElsewhere,
		"a queue contains no secret":                            queueViewHidesSecrets,
		"a queue shows the chain to its root":                   queueViewChain,
	}
}

func queueViewUnused(s *fixture) {
	if q := s.queue(s.name); q.Revision != 0 || len(q.Waiters) != 0 {
		s.Errorf("the queue is %+v", q)
	}
	if got := s.names(lock.LockQuery{Prefix: s.name}); len(got) != 0 {
		s.Errorf("reading a queue created %v", got)
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
		s.enqueue(lock.Acquire{Holder: w.Holder, Mode: w.Mode, Capacity: w.Capacity})
	}
	q, events := s.queue(s.name), s.events(s.name, 4)
	if q.Revision != 4 || len(q.Waiters) != 3 {
		s.Fatalf("the queue is %+v", q)
	}
	for i, got := range q.Waiters {
		if w := want[i]; got.Position != i+1 || got.Place != int64(i+2) || got.Ahead != i || !got.Attached || got.KeptFor != 0 ||
			got.Holder != w.Holder || got.Mode != w.Mode ||
			got.Capacity != w.Capacity ||
			got.BlockedBy != w.BlockedBy {
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
	s.enqueue(lock.Acquire{Holder: "permit", Mode: lock.Permit, Capacity: threePermits})
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

func queueViewKeptPlace(s *fixture) {
	s.retryWithinRetention(func(s *fixture) error {
		s.mustAcquire(lock.Acquire{})
		if err := s.waitKeepingPlace(lock.Acquire{Holder: "second"}); err != nil {
			return err
		}
		s.enqueue(lock.Acquire{Holder: "third"})
		q := s.queue(s.name).Waiters
		if len(q) != 2 {
			return fmt.Errorf("the queue is %+v", q)
		}
		if kept := q[0]; kept.Attached || kept.BlockedBy != lock.BlockedByDisconnect || kept.KeptFor <= 0 ||
			kept.KeptFor > lock.PlaceRetention ||
			kept.Place != 2 {
			return fmt.Errorf("the detached waiter is shown as %+v", kept)
		}
		if third := q[1]; third.Position != 2 || third.Ahead != 0 || third.BlockedBy != lock.BlockedByHolders ||
			!third.Attached {
			return fmt.Errorf("the waiter behind a detached one is shown as %+v", third)
		}
		return nil
	})
}

func queueViewCount(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueueN(3)
	page, err := s.locks.Locks(s.ctx, lock.LockQuery{Prefix: s.name})
	s.must(err)
	if len(page.Items) != 1 || page.Items[0].Waiters != 3 {
		s.Errorf("the list is %+v", page.Items)
	}
	if l := s.get(s.name); l.Waiters != 3 || l.Revision != 4 {
		s.Errorf("with three waiters the lock is %+v", l)
	}
	w[1].cancelAndWait()
	s.awaitQueue("waiter 1", "waiter 3")
	s.must(s.release(first))
	w[0].mustBeGranted()
	if l := s.get(s.name); l.Waiters != 1 {
		s.Errorf("with one waiter the lock is %+v", l)
	}
}

func queueViewHidesSecrets(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueueN(2)
	w[0].cancelAndWait()
	s.awaitQueue("waiter 2")
	s.expectNoSecret(
		[]any{s.queue(s.name), s.get(s.name), s.events(s.name, 4)},
		first.ID,
		w[0].request.LeaseID,
		w[1].request.LeaseID,
	)
}

// queueViewChain: the holder waits for another lock by its task, whose holder waits for a third one, which is held
// without a task.
func queueViewChain(s *fixture) {
	if q := s.queue(s.other(0)); q.Chain != nil {
		s.Errorf("nothing waits, and the chain is %+v", q.Chain)
	}
	s.holdAs(0, "one")
	s.holdAs(1, "two")
	_, err := s.acquire(lock.Acquire{Name: s.other(2), Holder: "three"})
	s.must(err)
	s.enqueue(lock.Acquire{Name: s.other(0), Holder: "waiter"})
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

// queueViewElsewhere: in a tree a reader holds a lock, a writer waits for the root, and others wait below: for the
// lock, which is free, behind the writer above; and below the reader. A set waits for a lock outside of the tree.
func queueViewElsewhere(s *fixture) {
	s.tree()
	s.holdIn("src", lock.Shared)
	outside := s.mustAcquire(lock.Acquire{Name: s.name + "-outside", Holder: "outside"})
	s.enqueue(lock.Acquire{Name: s.in("src:a"), Holder: "below"})
	s.enqueue(lock.Acquire{Name: s.name, Holder: "all"})
	s.enqueue(lock.Acquire{Name: s.in("doc"), Holder: "behind"})
	s.enqueue(lock.Acquire{Name: "", Set: []lock.Member{{Name: s.in("src:b"), Mode: lock.Shared}, {Name: outside.Name}}, Holder: "set"})
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
