package sim

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A deterministicGuard takes chance out of a guard. Guards move the instants at which they call a
// little, by random numbers of the runtime that no seed decides: renewals are sent up
// to a fifth sooner than they must be, and the pauses between tries are half to one
// and a half times as long as they are meant to be. A deterministicGuard has each such call leave
// at the latest instant that it could have been made at, and its deadline moves along.
//
// To know that instant it repeats what package guard computes. Should the two differ,
// runs of one seed differ: there is a test for that. No other harm is done.
type deterministicGuard struct {
	plan Plan

	asked    time.Time     // when the last answer to an acquire or a renewal was there
	renewIn  time.Duration // after that, at the latest
	againIn  time.Duration // after that, at the latest, the next acquire
	waits    time.Time     // until when, at the most
	failures int           // since a place was kept
	deadline sharedTime    // of the lease
	holds    bool          // the guard has shown the lease to those who work under it
	ended    atomic.Bool   // the guard gives it back

	until     time.Time // when the guard gives up releasing, at the latest
	released  time.Time // when the last answer to a release was there
	releaseIn time.Duration
	tries     int
	refusal   error // the last
}

// An sharedTime is a time that the work and the renewals of a lease share.
type sharedTime struct{ at atomic.Pointer[time.Time] }

func (i *sharedTime) set(t time.Time) { i.at.Store(&t) }

// get returns the time, zero if it was not set.
func (i *sharedTime) get() time.Time {
	if t := i.at.Load(); t != nil {
		return *t
	}
	return time.Time{}
}

// The pauses of package guard: the first, and the greatest, before chance has its say.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
)

// pause returns the longest that the guard makes after that many failures in a row.
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

// renewal returns when a renewal leaves that the guard makes now.
func (s *deterministicGuard) renewal(now time.Time) time.Time {
	return s.leaves(now, s.asked, s.renewIn)
}

// acquire returns when an acquire leaves that the guard makes now.
func (s *deterministicGuard) acquire(now time.Time) time.Time {
	return s.leaves(now, s.asked, s.againIn)
}

// release returns when a release leaves that the guard makes now.
func (s *deterministicGuard) release(now time.Time) time.Time {
	return s.leaves(now, s.released, s.releaseIn)
}

// leaves returns since plus in. What is done right after what was before, or for the
// first time, leaves at once.
func (s *deterministicGuard) leaves(now, since time.Time, in time.Duration) time.Time {
	if since.IsZero() || now.Equal(since) {
		return now
	}
	return since.Add(in)
}

// answered notes what the guard is told about an acquire or a renewal now. A grant of
// which too little is left is as good as none to a guard that acquires.
func (s *deterministicGuard) answered(g lock.Grant, err error) {
	s.asked = time.Now()
	left := g.Until.Sub(s.asked) - s.plan.margin()
	if e := (*lock.Error)(nil); errors.As(err, &e) && e.Code == lock.ErrHeld && e.KeptFor > 0 {
		s.failures = 0
		return
	}
	if s.renewIn = min(s.plan.TTL/30, longestPause) + 2; err == nil {
		s.renewIn = min(s.plan.TTL/3, max(left/2, s.plan.TTL/30)) + 2
	}
	if until := s.asked.Add(left); err == nil && until.After(s.deadline.get()) {
		s.deadline.set(until)
	}
	if err != nil || left <= 0 {
		s.failures++
		s.againIn = pause(s.failures, err)
	}
}

// skipRandomChoice has a guard that asks for the lock not know of its refusal for a while, if only
// chance would decide how long it still waits when it tries again: not at all, for less
// than the longest call, or for longer.
func (s *deterministicGuard) skipRandomChoice() {
	for _, turn := range []time.Time{s.waits.Add(-longestWait), s.waits} {
		if turn.After(s.asked.Add(s.againIn/3)) && turn.Before(s.asked.Add(s.againIn)) {
			time.Sleep(turn.Sub(s.asked))
			s.asked = time.Now()
		}
	}
}

// releasing returns for how long the guard goes on releasing, at the most, when it begins now. The lease that
// it has shown it gives up for as long as it lasts, and once when it is over.
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

// over is whether the lease that the guard had is lost or released. A context that has
// ended by its deadline does not say so any more.
func (s *deterministicGuard) over() bool {
	return s.ended.Load() || !time.Now().Before(s.deadline.get())
}

// letGo notes what the guard is told about a release now.
func (s *deterministicGuard) letGo(err error) {
	s.tries++
	s.refusal = err
	s.released, s.releaseIn = time.Now(), pause(s.tries, err)
}
