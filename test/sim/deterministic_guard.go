package sim

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A deterministicGuard removes randomness from a guard. Guards jitter their calls with random numbers of the runtime
// that no seed determines: a renewal is sent up to a fifth early, and a pause between tries lasts half to one and a
// half times its nominal length. A deterministicGuard delays each call to the latest instant that the jitter allows,
// and moves the call's deadline by as much.
//
// It repeats what package guard computes to know that instant. If the two differ, runs of one seed differ, which a
// test detects; nothing else goes wrong.
type deterministicGuard struct {
	plan Plan

	asked    time.Time     // when the last answer to an acquire or a renewal arrived
	renewIn  time.Duration // after asked, at the latest
	againIn  time.Duration // after asked, at the latest: the next acquire
	earliest time.Time     // when the guard may have begun the last acquire
	latest   time.Time     // when it has begun it at the latest
	waits    time.Time     // when the guard stops waiting
	failures int           // since the last kept place
	deadline sharedTime    // of the lease
	holds    bool          // the work has begun
	ended    atomic.Bool   // the guard releases the lease

	until     time.Time // when the guard stops trying to release, at the latest
	released  time.Time // when the last answer to a release arrived
	releaseIn time.Duration
	tries     int
	refusal   error // the last one
}

// A sharedTime is an instant that the work and the renewals of a lease share.
type sharedTime struct{ at atomic.Pointer[time.Time] }

func (i *sharedTime) set(t time.Time) { i.at.Store(&t) }

// get returns the instant, zero if it was not set.
func (i *sharedTime) get() time.Time {
	if t := i.at.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// Of package guard.
const (
	firstPause   = 50 * time.Millisecond // before jitter
	longestPause = 2 * time.Second       // before jitter
	cutAfter     = longestPause / 2      // a failed acquire that took so long resets the pauses
)

// pause returns the longest pause of the guard after that many failures in a row.
func pause(failures int, err error) time.Duration {
	p := firstPause
	for range failures - 1 {
		p = min(2*p, longestPause)
	}
	p = p*3/2 + 2
	if e := (*lock.Error)(nil); errors.As(err, &e) {
		p = max(p, min(e.RetryAfter, longestPause)+2)
	}
	return p
}

// renewal returns when a renewal leaves that the guard sends now.
func (s *deterministicGuard) renewal(now time.Time) time.Time {
	return s.leaves(now, s.asked, s.renewIn)
}

// acquire returns when an acquire leaves that the guard sends now.
func (s *deterministicGuard) acquire(now time.Time) time.Time {
	return s.leaves(now, s.asked, s.againIn)
}

// release returns when a release leaves that the guard sends now.
func (s *deterministicGuard) release(now time.Time) time.Time {
	return s.leaves(now, s.released, s.releaseIn)
}

// leaves returns since plus in. A first call, and a call right after the previous answer, leave immediately.
func (s *deterministicGuard) leaves(now, since time.Time, in time.Duration) time.Time {
	if since.IsZero() || now.Equal(since) {
		return now
	}
	return since.Add(in)
}

// begins records that the guard begins an acquire now, or may have begun it before if it paused.
func (s *deterministicGuard) begins(now time.Time) {
	s.earliest, s.latest = now, s.acquire(now)
	if s.latest.After(now) {
		s.earliest = s.asked.Add(s.againIn / 3)
	}
}

// granted records that an acquire or a renewal got a lease for at least that time.
func (s *deterministicGuard) granted(g lock.Grant) {
	s.asked = time.Now()
	left := g.Until.Sub(s.asked) - s.plan.margin()
	s.renewIn = min(s.plan.TTL/3, max(left/2, 0)) + 2
	if until := s.asked.Add(left); until.After(s.deadline.get()) {
		s.deadline.set(until)
	}
}

// refused records that a renewal failed.
func (s *deterministicGuard) refused() {
	s.asked = time.Now()
	s.renewIn = min(s.plan.TTL/30, longestPause) + 2
}

// failed records that the guard has to acquire again, and delays the failure if only jitter would decide how long the
// guard pauses now, or how long it waits in its next try: not at all, for less than the longest call, or for longer.
func (s *deterministicGuard) failed(tried bool, err error) {
	s.sleepOver(s.earliest.Add(cutAfter), s.latest.Add(cutAfter))
	s.asked = time.Now()
	e := (*lock.Error)(nil)
	switch held := errors.As(err, &e) && (e.Code == lock.ErrHeld || e.Code == lock.ErrFrozen); {
	case held && e.KeptFor > 0:
		s.failures = 0
		return
	case held && tried:
		return // it waits now, without a pause
	case s.asked.Sub(s.latest) >= cutAfter:
		s.failures = 0
	}
	s.failures++
	s.againIn = pause(s.failures, err)
	for _, turn := range []time.Time{s.waits.Add(-longestWait), s.waits} {
		s.sleepOver(turn.Add(-s.againIn), turn.Add(-s.againIn/3))
	}
	s.asked = time.Now()
}

// sleepOver sleeps until the end of a period if it is now within it.
func (s *deterministicGuard) sleepOver(from, until time.Time) {
	if now := time.Now(); now.After(from) && now.Before(until) {
		time.Sleep(until.Sub(now))
	}
}

// releasing returns how long the guard keeps trying to release if it begins now: until the end of a lease that is in
// use, and once if that lease is over.
func (s *deterministicGuard) releasing() time.Duration {
	left := time.Until(s.deadline.get()) + s.plan.margin()
	switch {
	case !s.holds:
		return allReleases
	case left <= 0:
		return aLateRelease
	}
	return min(left, allReleases)
}

// over reports whether the guard's lease is lost or released. A context that ended at its deadline cannot tell.
func (s *deterministicGuard) over() bool {
	return s.ended.Load() || !time.Now().Before(s.deadline.get())
}

// letGo records an answer to a release.
func (s *deterministicGuard) letGo(err error) {
	s.tries++
	s.refusal = err
	s.released, s.releaseIn = time.Now(), pause(s.tries, err)
}
