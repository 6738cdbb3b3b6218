package lock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// largeSet is locks on which a great set is decided, without the checks of a model, which would take long.
type largeSet struct {
	t     *testing.T
	names []string
	locks map[string]lock.Record
	token lock.Token
	now   time.Time
}

func newLargeSet(t *testing.T) *largeSet {
	s := &largeSet{t: t, locks: map[string]lock.Record{}, now: t0}
	for i := range lock.MaxSetSize {
		s.names = append(s.names, fmt.Sprintf("lock-%02d", i))
	}
	return s
}

// acquire returns the acquire of all locks, with a LeaseID of that number.
func (s *largeSet) acquire(n int, mode lock.Mode) lock.Acquire {
	a := lock.Acquire{LeaseID: lock.LeaseID{13: 1, 14: byte(n >> 8), 15: byte(n)}, Holder: "h", TTL: time.Hour, Wait: lock.MaxWait}
	for _, name := range s.names {
		a.Locks = append(a.Locks, lock.Member{Name: name, Mode: mode})
	}
	a, err := a.Resolve(lock.Bounds{MinTTL: lock.MinTTL, MaxTTL: lock.MaxTTL, MaxWaiters: 10_000})
	if err != nil {
		s.t.Fatal(err)
	}
	a.Attachment, a.Replica = lock.Attachment(n+1), 1
	return a
}

// do applies the command, as the engine would: a decision with too many events is refused.
func (s *largeSet) do(cmd lock.Command) lock.Decision {
	s.t.Helper()
	v := lock.View{Now: s.now, Self: 1, Tokens: func() lock.Token { s.token++; return s.token }}
	if a, ok := cmd.(lock.Acquire); ok && a.SessionID.Ref() != 0 {
		v.Sessions = map[lock.SessionRef]lock.Session{a.SessionID.Ref(): {ID: a.SessionID, TTL: time.Hour, ExpiresAt: t0.Add(time.Hour)}}
	}
	for _, name := range cmd.Names() {
		r, ok := s.locks[name]
		if !ok {
			r.Name = name
		}
		v.Locks = append(v.Locks, r)
	}
	d := cmd.Apply(v)
	if len(d.Events) > maxEvents {
		s.t.Fatalf("%T has %d events", cmd, len(d.Events))
	}
	for _, r := range d.Locks {
		s.locks[r.Name] = r
	}
	return d
}

// settle sweeps what is due or ready until nothing is, and returns the number of decisions.
func (s *largeSet) settle(d lock.Decision) (n int) {
	s.t.Helper()
	for again := true; again; {
		again = false
		if n++; n > 100 {
			s.t.Fatal("sweeps are due endlessly")
		}
		ready := d.ReadySets
		if !d.Due.IsZero() && !d.Due.After(s.now) {
			for _, r := range d.Locks {
				swept := s.do(lock.Sweep{Locks: []string{r.Name}})
				ready = append(ready, swept.ReadySets...)
			}
		}
		if len(ready) > 0 {
			d, again = s.do(lock.Sweep{Locks: ready[0]}), true
		}
	}
	return n
}

// TestALargeSetCanBeReleased, no matter how many calls wait for its locks: alone, or for all of them.
func TestALargeSetCanBeReleased(t *testing.T) {
	t.Parallel()
	const waiters = 140
	for name, alone := range map[string]bool{"each waits for one": true, "each waits for all": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLargeSet(t)
			first := s.acquire(waiters, lock.Exclusive)
			s.do(first)
			for i := range waiters {
				a := s.acquire(i, lock.Shared)
				if !alone {
					s.do(a)
					continue
				}
				for _, m := range a.Locks {
					one := a
					one.Locks = members(m)
					s.do(one)
				}
			}
			d := s.do(lock.Release{Locks: s.names, LeaseID: first.LeaseID})
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			s.settle(d)
			for _, name := range s.names {
				if r := s.locks[name]; len(r.Leases) != waiters || len(r.Queue) != 0 {
					t.Fatalf("%s has %d leases and %d waiters", name, len(r.Leases), len(r.Queue))
				}
			}
		})
	}
}

// TestManyLargeSetsEndInPortions, by their token or with their session.
func TestManyLargeSetsEndInPortions(t *testing.T) {
	t.Parallel()
	const session lock.SessionRef = 7
	for how, end := range map[string]lock.Command{
		"revoked with grace":            lock.Revoke{Name: "lock-03", Token: 1, Reason: "r"},
		"revoked at once":               lock.Revoke{Name: "lock-03", Token: 1, Reason: "r", SkipGrace: true},
		"with a session that is closed": lock.EndSession{Name: "lock-03", Ref: session, How: lock.Released},
		"with a session that is banned": lock.EndSession{Name: "lock-03", Ref: session, How: lock.Revoked, Reason: "r"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newLargeSet(t)
			for i := range 140 {
				s.do(s.acquire(i, lock.Shared))
			}
			for _, r := range s.locks {
				for i := range r.Leases {
					r.Leases[i].Session = session
				}
			}
			s.doAll(end)
			for _, name := range s.names {
				for _, l := range s.locks[name].Leases {
					if !l.Revoked() || how != "revoked with grace" {
						t.Fatalf("%s has %+v", name, l)
					}
				}
			}
		})
	}
}

// doAll applies the command and what each decision has left, and returns in how many decisions.
func (s *largeSet) doAll(cmd lock.Command) (n int) {
	s.t.Helper()
	for ; cmd != nil; n++ {
		d := s.do(cmd)
		if cmd = d.FollowUp; n > 100 || d.Err != nil {
			s.t.Fatalf("after %d decisions: %v", n, d.Err)
		}
	}
	return n
}

// TestARevocationInPartsIncludesAReaderBetween: a reader that joins alone while the sets of its token are revoked is
// revoked as well, and does not end the revocation before the last set.
func TestARevocationInPartsIncludesAReaderBetween(t *testing.T) {
	t.Parallel()
	s := newLargeSet(t)
	for i := range 2 {
		a := s.acquire(i, lock.Shared)
		a.Locks = a.Locks[:2+i]
		s.do(a)
	}
	r := lock.Revoke{Name: s.names[0], Token: 1, Reason: "r"}
	rest := s.do(r).FollowUp
	between := s.acquire(2, lock.Shared)
	between.Locks = members(sharedLock(s.names[0]))
	elsewhere := s.acquire(2, lock.Shared)
	elsewhere.Locks = members(sharedLock(s.names[1]))
	s.do(between)
	s.do(elsewhere) // another lease with the same lease_id
	joined := s.locks[s.names[0]]
	joined.Leases = append([]lock.Lease{joined.Leases[2]}, joined.Leases[:2]...) // as a store may read them
	s.locks[s.names[0]] = joined
	if n := s.doAll(rest); n > 4 {
		t.Errorf("it took %d decisions", n)
	}
	if left := s.locks[s.names[0]].Leases; len(left) != 0 {
		t.Errorf("the revocation has left %+v", left)
	}
	if left := s.locks[s.names[1]].Leases; len(left) != 1 || left[0].ID != elsewhere.LeaseID || left[0].Set != nil {
		t.Errorf("another lock has %+v", left)
	}
}

// TestARevocationInPartsIsAnsweredByAllOfThem: the set that is left is released before the second decision, so that
// nothing has the token any more, and it was not a revocation that ended it.
func TestARevocationInPartsIsAnsweredByAllOfThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reader bool // a lease of the same token that the first decision revokes
		want   error
	}{
		"the first one has revoked a lease": {true, nil},
		"none has revoked anything":         {false, lock.ErrTokenMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLargeSet(t)
			if c.reader {
				reader := s.acquire(0, lock.Shared)
				reader.Locks = members(sharedLock(s.names[0]))
				s.do(reader)
			}
			set := s.acquire(1, lock.Shared)
			set.Locks = set.Locks[:2]
			s.do(set)
			first := s.do(lock.Revoke{Name: s.names[0], Token: s.locks[s.names[0]].Token, Reason: "r"})
			s.do(lock.Release{Locks: set.Names(), LeaseID: set.LeaseID})
			if d := s.do(first.FollowUp); !errors.Is(d.Err, c.want) {
				t.Errorf("the second one is answered with %v, want %v", d.Err, c.want)
			}
		})
	}
}
