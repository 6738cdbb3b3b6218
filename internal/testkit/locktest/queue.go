package locktest

import (
	"fmt"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func queueing() cases {
	return cases{
		"a release hands the lock to who waits":               queueRelease,
		"30 waiters are served in the order of joining":       queueOrder,
		"a try never overtakes a waiter":                      queueTry,
		"a refusal tells how many are ahead":                  queueAhead,
		"a wait that is over is refused":                      queueOver,
		"a wait of what is free is none":                      queueFree,
		"a wait with the lease_id of one's lease is none":     queueReplay,
		"a waiter has the lock when the lease expires":        queueExpiry,
		"a waiter has the lock when the grace is over":        queueGrace,
		"a waiter has the lock when the lease is revoked":     queueRevoke,
		"a lease that was waited for begins with its grant":   queueBegins,
		"a lease that was waited for can be asked for again":  queueAgain,
		"waiters of different locks do not hinder each other": queueOthers,
	}
}

func queueRelease(s *scene) {
	first := s.granted(lock.Acquire{})
	w := s.joins(lock.Acquire{Holder: "second"})
	s.stand("second")
	s.must(s.release(first))
	s.held("second")
	g := w.has()
	if g.Token <= first.Token || g.Replayed || g.Holder != "second" {
		s.Errorf("after token %d the waiter was granted %+v", first.Token, g)
	}
	s.must(s.release(g))
	s.held()
	s.stand()
	s.proven(s.name, verify.Rules{})
}

func queueOrder(s *scene) {
	const n = 30
	g := s.granted(lock.Acquire{})
	for i, w := range s.line(n) {
		s.must(s.release(g))
		s.held(fmt.Sprintf("waiter %d", i+1))
		next := w.has()
		if next.Token <= g.Token {
			s.Errorf("token %d was granted after %d", next.Token, g.Token)
		}
		g = next
	}
	s.must(s.release(g))
	s.proven(s.name, verify.Rules{})
}

func queueTry(s *scene) {
	g := s.granted(lock.Acquire{})
	for _, w := range s.line(5) {
		_, err := s.acquire(lock.Acquire{Holder: "a try"})
		s.refused(err, lock.ErrHeld)
		s.must(s.release(g))
		_, err = s.acquire(lock.Acquire{Holder: "a try"})
		s.refused(err, lock.ErrHeld)
		g = w.has()
	}
	s.must(s.release(g))
	s.granted(lock.Acquire{Holder: "a try"})
	s.proven(s.name, verify.Rules{})
}

func queueAhead(s *scene) {
	first := s.granted(lock.Acquire{})
	for ahead := range 3 {
		_, err := s.acquire(lock.Acquire{Holder: "a try"})
		e := s.refused(err, lock.ErrHeld)
		if e.Ahead != ahead || e.Holder != "first" || e.Newest != first.Token || e.KeptFor != 0 {
			s.Errorf("with %d ahead the refusal is %+v", ahead, e)
		}
		s.joins(lock.Acquire{Holder: fmt.Sprint(ahead)})
	}
}

func queueOver(s *scene) {
	first := s.granted(lock.Acquire{})
	s.joins(lock.Acquire{Holder: "second"})
	before := time.Now()
	_, err := s.acquire(lock.Acquire{Holder: "third", Wait: 3 * brief})
	e := s.refused(err, lock.ErrHeld)
	if e.Holder != "first" || e.Newest != first.Token || e.Ahead != 1 || e.KeptFor != 0 || e.RetryAfter <= 0 || e.RetryAfter > alive {
		s.Errorf("the refusal is %+v", e)
	}
	if took := time.Since(before); took < 3*brief-lateness {
		s.Errorf("a wait of %v was over after %v", 3*brief, took)
	}
	s.stand("second")
	events := s.recorded(s.name, 4)
	if queued, left := events[2], events[3]; queued.Kind != lock.Queued || left.Kind != lock.Dequeued ||
		queued.Place != 3 || left.Place != 3 || left.Reason == "" || left.Holder != "third" {
		s.Errorf("joining and leaving are told as %+v and %+v", queued, left)
	}
}

func queueFree(s *scene) {
	s.granted(lock.Acquire{Wait: lock.MaxWait})
	s.recorded(s.name, 1)
}

func queueReplay(s *scene) {
	first := s.granted(lock.Acquire{})
	s.joins(lock.Acquire{Holder: "second"})
	again := s.granted(lock.Acquire{LeaseID: first.ID, Wait: lock.MaxWait})
	if !again.Replayed || again.Token != first.Token {
		s.Errorf("the lease %+v was replayed as %+v", first, again)
	}
}

func queueExpiry(s *scene) {
	first := s.granted(lock.Acquire{TTL: 3 * brief})
	g := s.calls(lock.Acquire{}).has()
	if g.AcquiredAt.Before(first.ExpiresAt.Add(-time.Millisecond)) {
		s.Errorf("the waiter had the lock %v before the lease's end", first.ExpiresAt.Sub(g.AcquiredAt))
	}
	_, err := s.renew(first, alive)
	s.lost(err, lock.Expired)
}

func queueGrace(s *scene) {
	first := s.granted(lock.Acquire{TTL: brief, Grace: 3 * brief})
	g := s.calls(lock.Acquire{}).has()
	if g.AcquiredAt.Before(first.EndsAt().Add(-time.Millisecond)) {
		s.Errorf("the waiter had the lock %v before the grace's end", first.EndsAt().Sub(g.AcquiredAt))
	}
}

func queueRevoke(s *scene) {
	first := s.granted(lock.Acquire{})
	w := s.joins(lock.Acquire{Holder: "second"})
	if l := s.revoked(first); len(l.Leases) != 1 || l.Leases[0].Holder != "second" {
		s.Errorf("the revocation answers with %+v", l)
	}
	w.has()
	_, err := s.renew(first, 0)
	s.lost(err, lock.Revoked)
}

func queueBegins(s *scene) {
	first := s.granted(lock.Acquire{})
	w := s.joins(lock.Acquire{Holder: "second", MaxHold: alive + time.Minute})
	third := s.joins(lock.Acquire{Holder: "third", TTL: brief})
	s.eventually("the third has waited for longer than its TTL", func() bool { return s.queue(s.name).Waiters[1].Waited > brief })
	s.must(s.release(first))
	g := w.has()
	after := time.Now()
	if !near(g.ExpiresAt, g.AcquiredAt.Add(alive)) {
		s.Errorf("the lease ends %v after its grant, want %v", g.ExpiresAt.Sub(g.AcquiredAt), alive)
	}
	if latest := after.Add(alive); g.Until.After(latest) {
		s.Errorf("Until is %v later than the lease's end can be", g.Until.Sub(latest))
	}
	if earliest := w.began.Add(alive - after.Sub(w.began) - lateness); g.Until.Before(earliest) {
		s.Errorf("Until is %v after the call began, which took %v", g.Until.Sub(w.began), after.Sub(w.began))
	}
	r, err := s.renew(g, 2*alive)
	s.must(err)
	if held := r.ExpiresAt.Sub(r.AcquiredAt); (held - alive - time.Minute).Abs() > time.Millisecond {
		s.Errorf("the lease ends %v after its grant, want its MaxHold of %v", held, alive+time.Minute)
	}
	s.must(s.release(g))
	if g := third.has(); !near(g.ExpiresAt, g.AcquiredAt.Add(brief)) {
		s.Errorf("the lease ends %v after its grant, want %v", g.ExpiresAt.Sub(g.AcquiredAt), brief)
	}
}

func queueAgain(s *scene) {
	first := s.granted(lock.Acquire{})
	w := s.joins(lock.Acquire{Holder: "second"})
	s.must(s.release(first))
	g := w.has()
	for _, wait := range []time.Duration{0, lock.MaxWait} {
		again := s.granted(lock.Acquire{LeaseID: g.ID, Holder: "second", Wait: wait})
		if !again.Replayed || again.Token != g.Token || !near(again.ExpiresAt, g.ExpiresAt) {
			s.Errorf("the lease %+v was replayed as %+v", g, again)
		}
	}
	s.must(s.release(g))
	_, err := s.acquire(lock.Acquire{LeaseID: g.ID, Holder: "second", Wait: lock.MaxWait})
	s.lost(err, lock.Released)
}

func queueOthers(s *scene) {
	one := s.granted(lock.Acquire{Name: s.name + ":1"})
	two := s.granted(lock.Acquire{Name: s.name + ":2"})
	first := s.joins(lock.Acquire{Name: one.Name, Holder: "a"})
	second := s.joins(lock.Acquire{Name: two.Name, Holder: "a", LeaseID: first.asked.LeaseID})
	s.must(s.release(two))
	second.has()
	if q := s.queue(one.Name); len(q.Waiters) != 1 {
		s.Errorf("after another lock's release the queue is %+v", q)
	}
	s.must(s.release(one))
	first.has()
}
