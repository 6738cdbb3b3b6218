package locktest

import (
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func queueCases() cases {
	return cases{
		"a release promotes the next waiter":                      queueRelease,
		"30 waiters are granted the lock in the order of joining": queueOrder,
		"a non-waiting acquire never passes a waiter":             queueTry,
		"a refusal has the number of waiters ahead":               queueAhead,
		"a wait that times out is refused":                        queueTimeout,
		"a free lock is granted without waiting":                  queueFree,
		"a waiting acquire of a held lease is replayed at once":   queueReplay,
		"a waiter is granted the lock when the lease expires":     queueExpiry,
		"a waiter is granted the lock when the grace ends":        queueGrace,
		"a waiter is granted the lock when the lease is revoked":  queueRevoke,
		"a lease from the queue starts at the grant":              queueBegins,
		"a lease from the queue can be replayed":                  queueAgain,
		"waiters of different locks are independent":              queueOthers,
	}
}

func queueRelease(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueue(lock.Acquire{Holder: "second"})
	s.expectQueue("second")
	s.must(s.release(first))
	s.expectHolders("second")
	g := w.mustBeGranted()
	if g.Token <= first.Token || g.Replayed || g.Holder != "second" {
		s.Errorf("after token %d the waiter was granted %+v", first.Token, g)
	}
	s.must(s.release(g))
	s.expectHolders()
	s.expectQueue()
	s.verifyHistory(s.name, verify.Rules{})
}

func queueOrder(s *fixture) {
	const n = 30
	g := s.mustAcquire(lock.Acquire{})
	for i, w := range s.enqueueN(n) {
		s.must(s.release(g))
		s.expectHolders(fmt.Sprintf("waiter %d", i+1))
		next := w.mustBeGranted()
		if next.Token <= g.Token {
			s.Errorf("token %d was granted after %d", next.Token, g.Token)
		}
		g = next
	}
	s.must(s.release(g))
	s.verifyHistory(s.name, verify.Rules{})
}

func queueTry(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	for _, w := range s.enqueueN(5) {
		_, err := s.acquire(lock.Acquire{Holder: "not waiting"})
		s.expectError(err, lock.ErrHeld)
		s.must(s.release(g))
		_, err = s.acquire(lock.Acquire{Holder: "not waiting"})
		s.expectError(err, lock.ErrHeld)
		g = w.mustBeGranted()
	}
	s.must(s.release(g))
	s.mustAcquire(lock.Acquire{Holder: "not waiting"})
	s.verifyHistory(s.name, verify.Rules{})
}

func queueAhead(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	for ahead := range 3 {
		_, err := s.acquire(lock.Acquire{Holder: "not waiting"})
		e := s.expectError(err, lock.ErrHeld)
		if e.Ahead != ahead || e.Holder != "first" || e.Newest != first.Token || e.KeptFor != 0 {
			s.Errorf("with %d ahead the refusal is %+v", ahead, e)
		}
		s.enqueue(lock.Acquire{Holder: fmt.Sprint(ahead)})
	}
}

func queueTimeout(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	s.enqueue(lock.Acquire{Holder: "second"})
	before := time.Now()
	_, err := s.acquire(lock.Acquire{Holder: "third", Wait: 3 * shortTTL})
	e := s.expectError(err, lock.ErrHeld)
	if e.Holder != "first" || e.Newest != first.Token || e.Ahead != 1 || e.KeptFor != 0 || e.RetryAfter <= 0 ||
		e.RetryAfter > longTTL {
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

func queueFree(s *fixture) {
	s.mustAcquire(lock.Acquire{Wait: lock.MaxWait})
	s.events(s.name, 1)
}

func queueReplay(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	s.enqueue(lock.Acquire{Holder: "second"})
	again := s.mustAcquire(lock.Acquire{LeaseID: first.ID, Wait: lock.MaxWait})
	if !again.Replayed || again.Token != first.Token {
		s.Errorf("the lease %+v was replayed as %+v", first, again)
	}
}

func queueExpiry(s *fixture) {
	first := s.mustAcquire(lock.Acquire{TTL: 3 * shortTTL})
	g := s.startAcquire(lock.Acquire{}).mustBeGranted()
	if g.AcquiredAt.Before(first.ExpiresAt.Add(-time.Millisecond)) {
		s.Errorf("the waiter was granted the lock %v before the lease's end", first.ExpiresAt.Sub(g.AcquiredAt))
	}
	_, err := s.renew(first, longTTL)
	s.expectLost(err, lock.Expired)
}

func queueGrace(s *fixture) {
	first := s.mustAcquire(lock.Acquire{TTL: shortTTL, Grace: 3 * shortTTL})
	g := s.startAcquire(lock.Acquire{}).mustBeGranted()
	if g.AcquiredAt.Before(first.EndsAt().Add(-time.Millisecond)) {
		s.Errorf("the waiter was granted the lock %v before the grace's end", first.EndsAt().Sub(g.AcquiredAt))
	}
}

func queueRevoke(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueue(lock.Acquire{Holder: "second"})
	if l := s.mustRevoke(first); len(l.Leases) != 1 || l.Leases[0].Holder != "second" {
		s.Errorf("the revocation answers with %+v", l)
	}
	w.mustBeGranted()
	_, err := s.renew(first, 0)
	s.expectLost(err, lock.Revoked)
}

func queueBegins(s *fixture) {
	const ttl = 20 * shortTTL // even a busy machine claims the grant before it has ended
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueue(lock.Acquire{Holder: "second", MaxHold: longTTL + time.Minute})
	third := s.enqueue(lock.Acquire{Holder: "third", TTL: ttl})
	s.eventually(
		"the third has waited for longer than its TTL",
		func() bool { return s.queue(s.name).Waiters[1].Waited > ttl },
	)
	s.must(s.release(first))
	g := w.mustBeGranted()
	after := time.Now()
	if !isNear(g.ExpiresAt, g.AcquiredAt.Add(longTTL)) {
		s.Errorf("the lease ends %v after its grant, want %v", g.ExpiresAt.Sub(g.AcquiredAt), longTTL)
	}
	if latest := after.Add(longTTL); g.Until.After(latest) {
		s.Errorf("Until is %v later than the lease's end can be", g.Until.Sub(latest))
	}
	if earliest := w.began.Add(longTTL - after.Sub(w.began) - tolerance); g.Until.Before(earliest) {
		s.Errorf("Until is %v after the call began, which took %v", g.Until.Sub(w.began), after.Sub(w.began))
	}
	r, err := s.renew(g, 2*longTTL)
	s.must(err)
	if held := r.ExpiresAt.Sub(r.AcquiredAt); (held - longTTL - time.Minute).Abs() > time.Millisecond {
		s.Errorf("the lease ends %v after its grant, want its MaxHold of %v", held, longTTL+time.Minute)
	}
	s.must(s.release(g))
	if g := third.mustBeGranted(); !isNear(g.ExpiresAt, g.AcquiredAt.Add(ttl)) {
		s.Errorf("the lease ends %v after its grant, want %v", g.ExpiresAt.Sub(g.AcquiredAt), ttl)
	}
}

func queueAgain(s *fixture) {
	first := s.mustAcquire(lock.Acquire{})
	w := s.enqueue(lock.Acquire{Holder: "second"})
	s.must(s.release(first))
	g := w.mustBeGranted()
	for _, wait := range []time.Duration{0, lock.MaxWait} {
		again := s.mustAcquire(lock.Acquire{LeaseID: g.ID, Holder: "second", Wait: wait})
		if !again.Replayed || again.Token != g.Token || !isNear(again.ExpiresAt, g.ExpiresAt) {
			s.Errorf("the lease %+v was replayed as %+v", g, again)
		}
	}
	s.must(s.release(g))
	_, err := s.acquire(lock.Acquire{LeaseID: g.ID, Holder: "second", Wait: lock.MaxWait})
	s.expectLost(err, lock.Released)
}

func queueOthers(s *fixture) {
	one := s.mustAcquire(lock.Acquire{Name: s.name + ":1"})
	two := s.mustAcquire(lock.Acquire{Name: s.name + ":2"})
	first := s.enqueue(lock.Acquire{Name: one.Name, Holder: "a"})
	second := s.enqueue(lock.Acquire{Name: two.Name, Holder: "a", LeaseID: first.request.LeaseID})
	s.must(s.release(two))
	second.mustBeGranted()
	if q := s.queue(one.Name); len(q.Waiters) != 1 {
		s.Errorf("after another lock's release the queue is %+v", q)
	}
	s.must(s.release(one))
	first.mustBeGranted()
}
