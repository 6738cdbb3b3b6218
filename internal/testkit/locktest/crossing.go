package locktest

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

func crossing() cases {
	return cases{
		"a context that ends around the release leaves the lock free":              crossFree,
		"a context that ends around the release lets the next have it":             crossNext,
		"a wait that is over around the release is granted or refused, never both": crossOver,
		"contexts that end at random hold nobody up":                               crossRandom,
	}
}

// A crossroads lets something meet a release: now just before it is sent, now just
// after its answer, now at random about while releases of this service are under way.
type crossroads struct {
	s     *scene
	round int
	took  time.Duration
}

func (c *crossroads) release(g lock.Grant, do func()) {
	c.s.Helper()
	c.round++
	switch c.round % 4 {
	case 0:
		do()
	case 1:
		defer do()
	default:
		defer time.AfterFunc(rand.N(2*c.took+time.Microsecond), do).Stop()
	}
	start := time.Now()
	c.s.must(c.s.release(g))
	c.took = (3*c.took + time.Since(start)) / 4
}

// settled waits until the call, whose context has ended or will have, is over,
// and releases what it has.
func (c *call) settled() {
	c.s.Helper()
	c.hangUp()
	c.answered()
	switch {
	case c.err == nil:
		c.s.must(c.s.release(c.grant))
	case !errors.Is(c.err, lock.ErrUnavailable) && !errors.Is(c.err, lock.ErrUnknownOutcome):
		c.s.Fatalf("%s has left, and was answered %v", c.asked.Holder, c.err)
	}
}

func crossFree(s *scene) {
	c := &crossroads{s: s}
	for range 40 {
		g := s.granted(lock.Acquire{})
		w := s.joins(lock.Acquire{Holder: "waiter", Wait: lock.MaxWait})
		c.release(g, w.hangUp)
		w.settled()
		// A lease that a ghost has would outlive this wait by far.
		next := s.calls(lock.Acquire{Holder: "next", Wait: lock.MaxWait})
		s.must(s.release(next.has()))
	}
	s.remain()
	s.proven(s.name, verify.Rules{})
}

func crossNext(s *scene) {
	c := &crossroads{s: s}
	g := s.granted(lock.Acquire{})
	for range 40 {
		w := s.joins(lock.Acquire{Holder: "waiter", Wait: lock.MaxWait})
		next := s.joins(lock.Acquire{Holder: "next", Wait: lock.MaxWait})
		c.release(g, w.hangUp)
		w.settled()
		g = next.has()
	}
	s.must(s.release(g))
	s.remain()
	s.proven(s.name, verify.Rules{})
}

func crossOver(s *scene) {
	for range 15 {
		g := s.granted(lock.Acquire{})
		w := s.calls(lock.Acquire{Holder: "waiter", Wait: brief})
		over := time.NewTimer(time.Until(w.began.Add(brief - time.Millisecond + rand.N(3*time.Millisecond))))
		defer over.Stop()
		<-over.C
		s.must(s.release(g))
		w.answered()
		if w.err == nil {
			s.must(s.release(w.grant))
		} else {
			s.refused(w.err, lock.ErrHeld)
		}
		s.must(s.release(s.granted(lock.Acquire{})))
		s.stand()
	}
	s.proven(s.name, verify.Rules{AllowOvertaking: true}) // one whose time is over while it has not said so
}

// crossRandom has callers come and go while one goes through with it each time.
func crossRandom(s *scene) {
	together(6, func(i int) {
		for range 10 {
			w := s.calls(lock.Acquire{Holder: "fickle", Wait: lock.MaxWait})
			end := time.AfterFunc(rand.N(10*time.Millisecond), w.hangUp)
			<-w.done
			end.Stop()
			if w.err == nil {
				w.err = s.release(w.grant)
			}
			if w.err != nil && !errors.Is(w.err, lock.ErrUnavailable) && !errors.Is(w.err, lock.ErrUnknownOutcome) {
				s.Errorf("caller %d: %v", i, w.err)
			}
		}
	})
	s.must(s.release(s.calls(lock.Acquire{Holder: "the last", Wait: lock.MaxWait}).has()))
	s.remain()
	s.proven(s.name, verify.Rules{})
}
