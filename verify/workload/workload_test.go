package workload_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// twoReplicas returns two replicas of one service in memory.
func twoReplicas(m *memlock.Memory) []workload.Replica {
	return []workload.Replica{{Via: "one", Locks: m.Replica(1)}, {Via: "two", Locks: m.Replica(2)}}
}

func TestEveryCallGetsEveryExpectedAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, rec := memlock.New(), verify.NewRecorder()
		stats, err := workload.Run(t.Context(), rec, workload.Options{Services: twoReplicas(m), Prefix: "verify:1",
			Operations: 20_000, TurnsPerName: 100, Seed: 1, Tree: true, Policy: true})
		if err != nil {
			t.Fatal(err)
		}
		var table strings.Builder
		if err := stats.WriteText(&table); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d calls, %d sent again, in %v\n%s", stats.Total(), stats.Retries, stats.Took, table.String())
		for verb, outcomes := range map[verify.Verb][]string{
			verify.Acquire:     {workload.Done, "lock_held", "lock_frozen", "lease_lost", "unavailable", "deadlock"},
			verify.Renew:       {workload.Done, "lease_lost", "lease_in_set"},
			verify.Release:     {workload.Done, "lease_lost", "lease_in_set"},
			verify.Revoke:      {workload.Done, "token_mismatch"},
			verify.ReadLock:    {workload.Done},
			verify.VerifyToken: {workload.Done},
			verify.WriteFenced: {workload.Done, "stale_token", "unknown_token", "version_mismatch"},
			verify.ReadFenced:  {workload.Done, "not_found"},
			verify.Freeze:      {workload.Done},
			verify.Thaw:        {workload.Done},
			verify.SetRule:     {workload.Done},
		} {
			for _, o := range outcomes {
				if stats.Calls[verb][o] == 0 {
					t.Errorf("no %s was ever answered %s", verb, o)
				}
			}
		}
		for _, verb := range []verify.Verb{verify.OpenSession, verify.RenewSession, verify.CloseSession} {
			if stats.Calls[verb]["done"] < 50 {
				t.Errorf("%s: only %v", verb, stats.Calls[verb])
			}
		}
		if got := len(rec.History().Calls); got != stats.Total() || got < 20_000 {
			t.Errorf("%d calls were recorded and %d counted, of 20,000", got, stats.Total())
		}
		page, err := m.Replica(1).Locks(t.Context(), paddock.LockQuery{Prefix: "verify:1:", Limit: paddock.MaxLimit})
		if err != nil || len(page.Items) < 40 {
			t.Errorf("only %d names were used; %v", len(page.Items), err)
		}
	})
}

func TestClientsThatNeverCancelAreServedInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, rec := memlock.New().Replica(1), verify.NewRecorder()
		if _, err := workload.Run(t.Context(), rec, workload.Options{
			Services: []workload.Replica{{Via: "here", Locks: s}}, Prefix: "verify", Operations: 5000, Locks: 4,
			TurnsPerName: 10_000, NeverCancel: true,
		}); err != nil {
			t.Fatal(err)
		}
		h := rec.History()
		inSet := func(e lock.Event) bool { return waitsForSet(h, e.Holder) }
		for n := range 4 {
			name := fmt.Sprintf("verify:%d.0", n)
			page, err := s.Events(t.Context(), paddock.EventQuery{Names: []string{name}, Limit: paddock.MaxLimit})
			if err != nil || len(page.Items) < 100 {
				t.Fatalf("%d events of %s, %v", len(page.Items), name, err)
			}
			permits := func(e lock.Event) int { return permitsFor(h, e.Holder, name) }
			if err := (verify.Rules{Capacity: 3, AllowWaiters: true, InSet: inSet, Permits: permits}).Check(page.Items); err != nil {
				t.Error(err)
			}
		}
	})
}

// permitsFor returns how many permits of the lock the holder has asked for.
func permitsFor(h verify.History, holder, name string) int {
	for _, c := range h.Calls {
		a, ok := c.Request.(lock.Acquire)
		if !ok || a.Holder != holder {
			continue
		}
		for _, m := range a.Locks {
			if m.Name == name {
				return max(m.Permits, 1)
			}
		}
	}
	return 0
}

// waitsForSet reports whether the holder has asked for a set.
func waitsForSet(h verify.History, holder string) bool {
	return slices.ContainsFunc(h.Calls, func(c verify.Call) bool {
		a, ok := c.Request.(lock.Acquire)
		return ok && a.Holder == holder && len(a.Locks) > 0
	})
}

func TestWaitUntilFreeNamesAHeldLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memlock.New().Replica(1)
		if _, err := s.Acquire(t.Context(), lock.Acquire{Locks: lock.One("verify:7"), Holder: "me", TTL: time.Hour}); err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := workload.WaitUntilFree(soon, s, "verify:"); err == nil ||
			!strings.Contains(err.Error(), "verify:7 is not free") {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestWaitUntilFreeRevokesASuspectLeaseInATree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memlock.New().Replica(1)
		if _, err := s.DeclareTree(t.Context(), "verify:tree"); err != nil {
			t.Fatal(err)
		}
		a := lock.Acquire{Locks: lock.One("verify:tree:1"), Holder: "me", TTL: time.Second, Stays: true}
		if _, err := s.Acquire(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * a.TTL)
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := workload.WaitUntilFree(soon, s, "verify:"); err != nil {
			t.Error(err)
		}
	})
}

func TestRunEndsWithItsTimeOrItsContext(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(context.Context, workload.Options) (workload.Stats, error){
		"its time": func(ctx context.Context, o workload.Options) (workload.Stats, error) {
			o.For = 10 * time.Second
			return workload.Run(ctx, verify.NewRecorder(), o)
		},
		"its context": func(ctx context.Context, o workload.Options) (workload.Stats, error) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return workload.Run(ctx, verify.NewRecorder(), o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stats, err := run(t.Context(),
					workload.Options{Services: twoReplicas(memlock.New()), Prefix: "verify", Clients: 8})
				if err != nil || stats.Took < 10*time.Second || stats.Took > 16*time.Second || stats.Total() == 0 {
					t.Errorf("%d calls took %v, %v", stats.Total(), stats.Took, err)
				}
			})
		})
	}
}

// TestHistoriesWithLostAnswersPass also checks that clients use only leases that an answer has granted.
func TestHistoriesWithLostAnswersPass(t *testing.T) {
	t.Parallel()
	for seed := range uint64(soak.Rounds(3, 30)) {
		synctest.Test(t, func(t *testing.T) {
			m, rec := memlock.New(), verify.NewRecorder()
			both := twoReplicas(m)
			for i, one := range both {
				both[i].Locks = &lossy{Service: one.Locks}
			}
			stats, err := workload.Run(t.Context(), rec, workload.Options{
				Services: both, Prefix: "verify", Operations: 5000, RetryFor: time.Second, Seed: seed, Tree: true, Policy: true, Hold: true,
			})
			if err != nil || stats.Retries < 100 {
				t.Fatalf("%d calls were sent again, %v", stats.Retries, err)
			}
			time.Sleep(time.Minute)
			h := rec.History()
			if h.Events, err = verify.Collect(t.Context(), m.Replica(1), "verify:"); err != nil {
				t.Fatal(err)
			}
			checkPasses(t, h)
			granted := map[lock.LeaseID]bool{}
			for _, c := range h.Calls {
				switch asked := c.Request.(type) {
				case lock.Acquire:
					granted[asked.LeaseID] = granted[asked.LeaseID] || c.Err == nil
				case lock.Renew:
					if !granted[asked.LeaseID] {
						t.Fatalf("a lease was renewed via %s before any answer granted it", c.Via)
					}
				}
			}
		})
	}
}

// checkPasses checks the history, and returns the report.
func checkPasses(t *testing.T, h verify.History) verify.Report {
	t.Helper()
	r := h.Check(verify.CheckOptions{AllowOvertaking: true})
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !r.OK() {
		t.Errorf("%v: %s", err, text.String())
	}
	return r
}

// A lossy service loses every seventh request and every seventh answer.
type lossy struct {
	paddock.Service
	calls atomic.Int64
}

func (l *lossy) send(do func() error) error {
	n := l.calls.Add(1) % 7
	if n == 0 {
		return &lock.Error{Code: lock.ErrUnavailable, Detail: "It was lost on its way there."}
	}
	if err := do(); n != 1 {
		return err
	}
	return &lock.Error{Code: lock.ErrUnknownOutcome, Detail: "Its answer was lost."}
}

func (l *lossy) Acquire(ctx context.Context, a lock.Acquire) (g lock.Grant, err error) {
	err = l.send(func() (err error) { g, err = l.Service.Acquire(ctx, a); return err })
	return g, err
}

func (l *lossy) Renew(ctx context.Context, r lock.Renew) (g lock.Grant, err error) {
	err = l.send(func() (err error) { g, err = l.Service.Renew(ctx, r); return err })
	return g, err
}

func (l *lossy) Release(ctx context.Context, r lock.Release) error {
	return l.send(func() error { return l.Service.Release(ctx, r) })
}

func (l *lossy) Revoke(ctx context.Context, r lock.Revoke) (k lock.Lock, err error) {
	err = l.send(func() (err error) { k, err = l.Service.Revoke(ctx, r); return err })
	return k, err
}

func (l *lossy) WriteFenced(ctx context.Context, w lock.FencedWrite) (f lock.FencedValue, err error) {
	err = l.send(func() (err error) { f, err = l.Service.WriteFenced(ctx, w); return err })
	return f, err
}

func TestUnexpectedAnswerEndsTheRun(t *testing.T) {
	t.Parallel()
	for _, code := range []lock.Code{lock.ErrInvalid, lock.ErrInternal, lock.ErrRoleMissing, lock.ErrCapacityMismatch,
		"another"} {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				broken := []workload.Replica{{Via: "here", Locks: failingRenewals{memlock.New().Replica(1), code}}}
				_, err := workload.Run(t.Context(), verify.NewRecorder(),
					workload.Options{Services: broken, Prefix: "verify"})
				if !errors.Is(err, code) || !strings.Contains(err.Error(), "renew via here") {
					t.Errorf("the run ended with %v", err)
				}
			})
		})
	}
}

// failingRenewals is a service that refuses all renewals.
type failingRenewals struct {
	paddock.Service
	code lock.Code
}

func (r failingRenewals) Renew(context.Context, lock.Renew) (lock.Grant, error) {
	return lock.Grant{}, &lock.Error{Code: r.code, Detail: "no"}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	t.Parallel()
	here := twoReplicas(memlock.New())
	for want, o := range map[string]workload.Options{
		"no service":           {Prefix: "verify"},
		"the prefix":           {Services: here, Prefix: "a b"},
		"give 1 to 150":        {Services: here, Prefix: strings.Repeat("x", 151)},
		"at least one":         {Services: here, Prefix: "verify", Clients: -1},
		"the TTL is 1ms":       {Services: here, Prefix: "verify", TTL: time.Millisecond},
		"must not be negative": {Services: here, Prefix: "verify", For: -1},
		"no negative number":   {Services: here, Prefix: "verify", Operations: -1},
	} {
		if _, err := workload.Run(t.Context(), verify.NewRecorder(), o); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want it to say %q", o, err, want)
		}
	}
}

func TestWorkloadRunsOnTwoStores(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	var both []workload.Replica
	for _, via := range []string{"one", "two"} {
		both = append(both, workload.Replica{Via: via, Locks: replica.Store(t, url, store.Options{})})
	}
	calls := soak.Rounds(2000, 5000)
	rec := verify.NewRecorder()
	stats, err := workload.Run(t.Context(), rec, workload.Options{
		Services: both, Prefix: "verify", Operations: calls, For: 5 * time.Minute, TTL: 200 * time.Millisecond, Locks: 8,
		Seed: 7, Tree: true, Policy: true,
	})
	if err != nil || stats.Total() < calls {
		t.Errorf("%d calls in %v: %v", stats.Total(), stats.Took, err)
	}
	t.Logf("%.0f calls a second", stats.Rate())
	soon, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := workload.WaitUntilFree(soon, both[0].Locks, "verify:"); err != nil {
		t.Error(err)
	}
	h := rec.History()
	if h.Events, err = verify.Collect(soon, both[0].Locks, "verify:"); err != nil {
		t.Fatal(err)
	}
	r := checkPasses(t, h)
	for _, name := range []string{"sets are granted whole, and their leases end together", "sets have the same order at all their locks",
		"leases in a tree exclude those above and below", "nothing is granted in a freeze, or outside of a rule"} {
		if n, _ := casesOf(r, name); n < 10 { // freezes come by the clock, so a busy machine sees few in so many calls
			t.Errorf("%s: only %d cases", name, n)
		}
	}
}
