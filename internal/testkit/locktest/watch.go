package locktest

import (
	"context"
	"errors"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
)

func watchCases() cases {
	return cases{
		"a lock with another version is returned at once":                watchAtOnce,
		"a watch waits until the lock is granted or released":            watchGrant,
		"a watch waits until a waiter joins or leaves":                   watchQueue,
		"a watch does not miss the end of a lease":                       watchEnd,
		"a watch that times out returns the current lock":                watchOver,
		"20 watches all see the change":                                  watchMany,
		"a watch ends with its context":                                  watchContext,
		"a watch repeated from the last version reaches the last change": watchOn,
	}
}

// startWatch watches the lock in the background until its version differs from the one seen, and returns a function
// that waits for it.
func (s *fixture) startWatch(seen lock.Lock) (await func() lock.Lock) {
	return inBackground(s, func() (lock.Lock, error) {
		for {
			l, err := s.locks().Watch(s.ctx, paddock.Watch{Name: s.name, Seen: seen.Version(), Wait: lock.MaxWait})
			if err != nil || l.Version() != seen.Version() {
				return l, err
			}
		}
	})
}

func watchAtOnce(s *fixture) {
	for _, seen := range []string{"", "1.1.held.1.0", "0.0.held.0.0", "x", "a version that no lock has", "\"\r\n"} {
		l, err := s.locks().Watch(s.ctx, paddock.Watch{Name: s.name, Seen: seen, Wait: lock.MaxWait})
		s.must(err)
		if l.Name != s.name || l.State != lock.Free || l.Revision != 0 || l.AsOf.IsZero() {
			s.Errorf("an unused lock is seen as %+v", l)
		}
	}
	before := s.get(s.name)
	g := s.mustAcquire(lock.Acquire{Metadata: []byte(`{"a":1}`)})
	l, err := s.locks().Watch(s.ctx, paddock.Watch{Name: s.name, Seen: before.Version(), Wait: lock.MaxWait})
	s.must(err)
	if l.State != lock.Held || l.Revision != 1 || len(l.Leases) != 1 || l.Leases[0].Token != g.Token ||
		!sameJSON(l.Leases[0].Metadata, []byte(`{"a":1}`)) {
		s.Errorf("a held lock is seen as %+v", l)
	}
}

func watchGrant(s *fixture) {
	for range 3 {
		await := s.startWatch(s.get(s.name))
		g := s.mustAcquire(lock.Acquire{})
		if l := await(); l.State != lock.Held || l.Token != g.Token {
			s.Errorf("the grant is seen as %+v", l)
		}
		await = s.startWatch(s.get(s.name))
		s.must(s.release(g))
		if l := await(); l.State != lock.Free || l.Token != g.Token || len(l.Leases) != 0 {
			s.Errorf("the release is seen as %+v", l)
		}
	}
}

func watchQueue(s *fixture) {
	s.mustAcquire(lock.Acquire{})
	await := s.startWatch(s.get(s.name))
	waiter := s.enqueue(lock.Acquire{Holder: "waiter"})
	if l := await(); l.State != lock.Held || l.Waiters != 1 || l.Revision != 2 {
		s.Errorf("a joining waiter is seen as %+v", l)
	}
	await = s.startWatch(s.get(s.name))
	waiter.cancelAndWait()
	if l := await(); l.State != lock.Held || l.Waiters != 0 || l.Revision != 3 {
		s.Errorf("a leaving waiter is seen as %+v", l)
	}
}

// watchEnd uses a grace that outlives the wait, so that only time changes the lock. It must read the lock before the
// lease expires, and retries with a longer TTL until it does.
func watchEnd(s *fixture) {
	ttl := 3 * shortTTL
	g := s.mustAcquire(lock.Acquire{TTL: ttl, Grace: lock.MaxGrace})
	seen := s.get(s.name)
	for seen.State != lock.Held {
		s.must(s.release(g))
		ttl *= 2
		g = s.mustAcquire(lock.Acquire{TTL: ttl, Grace: lock.MaxGrace})
		seen = s.get(s.name)
	}
	began := time.Now()
	l, err := s.locks().Watch(s.ctx, paddock.Watch{Name: s.name, Seen: seen.Version(), Wait: lock.MaxWait})
	s.must(err)
	if took := time.Since(began); l.State != lock.InGrace || took > lock.MaxWait/2+ttl {
		s.Errorf("after %v the lock is seen as %+v", took, l)
	}
}

func watchOver(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	before, began := s.get(s.name), time.Now()
	l, err := s.locks().Watch(s.ctx, paddock.Watch{Name: s.name, Seen: before.Version(), Wait: 3 * shortTTL})
	s.must(err)
	if took := time.Since(began); took < 3*shortTTL-tolerance {
		s.Errorf("a wait of %v ended after %v", 3*shortTTL, took)
	}
	if l.Version() != before.Version() || len(l.Leases) != 1 || l.Leases[0].Token != g.Token {
		s.Errorf("the lock is %+v, before it was %+v", l, before)
	}
	if l.AsOf.Before(before.AsOf) {
		s.Errorf("the lock is as of %v, before it was as of %v", l.AsOf, before.AsOf)
	}
	l, err = s.locks().Watch(s.ctx, paddock.Watch{Name: s.name, Seen: before.Version()})
	s.must(err)
	if l.Version() != before.Version() {
		s.Errorf("without a wait the lock is %+v, before it was %+v", l, before)
	}
}

func watchMany(s *fixture) {
	g := s.mustAcquire(lock.Acquire{})
	seen := s.get(s.name)
	var all []func() lock.Lock
	for range soak.Rounds(8, 20) {
		all = append(all, s.startWatch(seen))
	}
	s.must(s.release(g))
	for _, await := range all {
		if l := await(); l.State != lock.Free {
			s.Errorf("the release is seen as %+v", l)
		}
	}
}

func watchContext(s *fixture) {
	seen := s.get(s.name)
	ctx, cancel := context.WithTimeoutCause(s.ctx, shortTTL, errors.New("enough"))
	defer cancel()
	s.expectError(errOf(s.locks().Watch(ctx, paddock.Watch{Name: s.name, Seen: seen.Version(), Wait: lock.MaxWait})), lock.ErrUnavailable)
}

// watchOn repeats the watch until it reaches the last change. One watch may skip several changes.
func watchOn(s *fixture) {
	const rounds = 20
	await := inBackground(s, func() (l lock.Lock, err error) {
		for seen := ""; err == nil && l.Revision < 2*rounds; seen = l.Version() {
			before := l.Revision
			l, err = s.locks().Watch(s.ctx, paddock.Watch{Name: s.name, Seen: seen, Wait: lock.MaxWait})
			if l.Revision < before {
				err = errors.Join(err, errors.New("the lock went back to an earlier revision"))
			}
		}
		return l, err
	})
	for range rounds {
		s.acquireAndRelease(lock.Acquire{})
	}
	if l := await(); l.State != lock.Free || l.Revision != 2*rounds {
		s.Errorf("in the end the lock is seen as %+v", l)
	}
}
