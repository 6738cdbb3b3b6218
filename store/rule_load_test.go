package store_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// setRule sets the rule. It tries again while the database is busy.
func setRule(t *testing.T, s paddock.Service, r lock.Rule) {
	t.Helper()
	until(t, "a rule is set", func() bool {
		_, err := s.SetRule(t.Context(), r)
		if err != nil && !errors.Is(err, lock.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// checkRules checks that nothing was granted outside of the rules, and that so many grants were checked. It makes no use of
// the other checks, for which the calls on one lock are too many.
func checkRules(t *testing.T, s paddock.Service, rec *verify.Recorder, least int) {
	t.Helper()
	h := rec.History()
	h.Calls = slices.DeleteFunc(h.Calls, func(c verify.Call) bool { return c.Outcome() != verify.Done })
	var err error
	if h.Events, err = verify.Collect(t.Context(), s, "jobs:"); err != nil {
		t.Fatal(err)
	}
	for _, c := range h.Check(verify.CheckOptions{AllowOvertaking: true, Timeout: time.Millisecond}).Checks {
		if !strings.Contains(c.Name, "outside of a rule") {
			continue
		}
		for _, v := range c.Violations {
			t.Errorf("%s: %s", v.Lock, v.Message)
		}
		if c.Examined < least {
			t.Errorf("only %d grants were checked", c.Examined)
		}
		t.Logf("%d grants were checked", c.Examined)
	}
}

// TestNothingIsGrantedOutsideOfARuleThatWasAnswered while 64 clients use two replicas, and the rule changes again and again.
func TestNothingIsGrantedOutsideOfARuleThatWasAnswered(t *testing.T) {
	t.Parallel()
	url, rec := pgtest.URL(t), verify.NewRecorder()
	replicas := []paddock.Service{open(t, url), open(t, url)}
	rule := func(n int) lock.Rule {
		return lock.Rule{Scope: "jobs:", MaxTTL: time.Duration(6+n%7) * time.Second, MinGrace: time.Duration(n%3) * 100 * time.Millisecond, Capacity: 1 + n%5}
	}
	operators := []paddock.Service{rec.Client("one", replicas[0]), rec.Client("two", replicas[1])}
	setRule(t, operators[0], rule(0))
	const least = 5 // grants under each rule, to calls that were made after its answer
	changes := soak.Rounds(10, 100)
	granted := make([]atomic.Int64, changes+1) // to calls that were made under the rule
	var newest atomic.Int64                    // rule that was answered
	var stop atomic.Bool
	var clients sync.WaitGroup
	for i := range 64 {
		clients.Go(func() {
			for s := rec.Client("", replicas[i%2]); !stop.Load(); {
				under := newest.Load()
				a := acquire([]string{"jobs:a", "jobs:b", "jobs:c"}[i%3])
				a.Locks[0].Mode, a.TTL, a.Wait = lock.Permit, 0, time.Duration(1+i%4)*10*time.Millisecond
				a.Holder = uuid.NewString()
				g, err := s.Acquire(t.Context(), a)
				switch {
				case err == nil:
					granted[under].Add(1)
					mustRelease(t, s, g)
				case !errors.Is(err, lock.ErrHeld) && !errors.Is(err, lock.ErrUnavailable):
					t.Error(err)
					return
				}
			}
		})
	}
	for n := range changes {
		until(t, "clients are granted permits", func() bool { return granted[n].Load() >= least })
		setRule(t, operators[n%2], rule(n+1))
		newest.Add(1)
	}
	stop.Store(true)
	clients.Wait()
	total := int64(0)
	for n := range granted {
		total += granted[n].Load()
	}
	t.Logf("%d changes, %d grants", changes, total)
	checkRules(t, replicas[0], rec, least*changes)
}

// TestWaitersGetPermitsWhileTheCapacityChanges: each of 50, time and again, and never more than the capacity allows.
func TestWaitersGetPermitsWhileTheCapacityChanges(t *testing.T) {
	t.Parallel()
	url, rec := pgtest.URL(t), verify.NewRecorder()
	replicas := []paddock.Service{open(t, url), open(t, url)}
	operator := rec.Client("one", replicas[0])
	of := func(capacity int) lock.Rule { return lock.Rule{Scope: "jobs:", Capacity: capacity} }
	setRule(t, operator, of(3))
	turns := soak.Rounds(3, 30)
	var left, granted atomic.Int64
	left.Store(50)
	var clients sync.WaitGroup
	for i := range 50 {
		clients.Go(func() {
			defer left.Add(-1)
			s := rec.Client("", replicas[i%2])
			for range turns {
				a := acquire("jobs:pool")
				a.Locks[0].Mode, a.Locks[0].Permits, a.Wait = lock.Permit, 1+i%2, lock.MaxWait
				a.Holder = uuid.NewString()
				g, err := s.Acquire(t.Context(), a)
				if err != nil {
					t.Error(err)
					return
				}
				granted.Add(1)
				mustRelease(t, s, g)
			}
		})
	}
	changes := 0
	for ; left.Load() > 0; changes++ {
		setRule(t, operator, of([]int{5, 2, 3}[changes%3]))
		before := granted.Load() // grants beside a change cannot be judged
		until(t, "permits are granted under the rule", func() bool { return granted.Load() >= before+15 || left.Load() == 0 })
	}
	clients.Wait()
	t.Logf("%d changes, %d grants", changes, granted.Load())
	checkRules(t, replicas[0], rec, 5)
}
