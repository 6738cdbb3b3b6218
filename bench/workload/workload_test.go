package workload_test

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/bench/workload"
)

func all() []workload.Workload {
	return []workload.Workload{
		workload.Distinct(3), workload.Contended(3), workload.Queues(4, 2), workload.Renewals(30, 3),
		workload.Renew(3), workload.Batches(2, 10), workload.Growth(3),
		workload.BesideJoins(3, 0, 0), workload.BesideJoins(3, 20, time.Minute), workload.Heartbeats(), workload.Idle(),
	}
}

func run(t *testing.T, w workload.Workload, s system.System) result.Run {
	t.Helper()
	return w.Run(t.Context(), s, workload.Options{Warm: time.Second, Measured: 2 * time.Second})
}

func TestEveryWorkloadCountsItsOperations(t *testing.T) {
	t.Parallel()
	for _, w := range all() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &fake{}
				r := run(t, w, s)
				if r.Error != "" || r.Operations == 0 || r.Seconds != 2 || r.PerSecond != float64(r.Operations)/2 {
					t.Errorf("the result is %+v", r)
				}
				for what, q := range r.Latency {
					if q.Count == 0 || q.P50 < 1000 || q.P99 < q.P50 || q.Max < q.P99 {
						t.Errorf("%s took %+v", what, q)
					}
				}
				if s.closed != w.Clients {
					t.Errorf("%d of %d clients were closed", s.closed, w.Clients)
				}
				for name, held := range s.held {
					if held {
						t.Errorf("%s is held in the end", name)
					}
				}
			})
		})
	}
}

func TestADistinctPairTakesTwoCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, workload.Distinct(4), &fake{})
		if want := 4 * 2000 / 2; r.Operations < want-8 || r.Operations > want+8 {
			t.Errorf("%d pairs, want about %d", r.Operations, want)
		}
		if q := r.Latency["acquire"]; q.P50 != 1000 || q.P99 != 1000 {
			t.Errorf("an acquire took %+v", q)
		}
	})
}

func TestLeasesAreRenewedAtTheGivenPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, workload.Renewals(300, 3), &fake{})
		if r.Operations < 57 || r.Operations > 63 || !r.Paced {
			t.Errorf("300 leases were renewed %d times in two seconds", r.Operations)
		}
	})
}

// A process is a fake that consists of this process.
type process struct{ *fake }

func (process) Processes() []system.Process {
	return []system.Process{{Role: system.Server, PID: os.Getpid()}}
}

func TestMemoryIsMeasuredAgainWhenTheClientsHaveLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, s := time.Now(), &fake{}
		r := run(t, workload.BesideJoins(3, 20, time.Minute), process{s})
		if r.Memory == nil || r.Memory.Before == 0 || r.Memory.During == 0 || r.Memory.After == 0 || s.closed == 0 {
			t.Errorf("the result is %+v", r)
		}
		if took := time.Since(began); took < time.Minute || took > time.Minute+10*time.Second {
			t.Errorf("the run took %v", took)
		}
	})
}

func TestSelfRenewedLeasesAreNotRenewedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, workload.Renewals(300, 3), &fake{selfRenewing: true, refusesRenew: true})
		if r.Operations < 57 || r.Operations > 63 || r.Latency["renew"].P50 != 1000 {
			t.Errorf("three clients reported %d renewals in two seconds, %+v", r.Operations, r.Latency)
		}
	})
}

func TestAHandOffIsMeasuredFromReleaseToNextGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, workload.Contended(8), &fake{})
		if q := r.Latency["hand-off"]; q.P50 != 1000 {
			t.Errorf("a hand-off took %+v", q)
		}
		if r.Fairness == nil || *r.Fairness <= 0 || *r.Fairness > 1 || r.LongestWait == nil || *r.LongestWait < 1 {
			t.Errorf("fairness %v, longest wait %v", r.Fairness, r.LongestWait)
		}
	})
}

func TestFaultsAreDetected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workload workload.Workload
		system   *fake
		want     string
	}{
		"two holders":                     {workload.Contended(3), &fake{grantsHeld: true}, "exclusion is broken"},
		"two holders in queues":           {workload.Queues(3, 1), &fake{grantsHeld: true}, "exclusion is broken"},
		"a token that does not increase":  {workload.Contended(3), &fake{stale: true}, "tokens do not increase"},
		"such a token for distinct names": {workload.Distinct(1), &fake{stale: true}, "tokens do not increase"},
		"such a token in a batch":         {workload.Batches(1, 10), &fake{stale: true}, "tokens do not increase"},
		"a service that never answers":    {workload.Distinct(1), &fake{neverAnswers: true}, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := run(t, c.workload, c.system)
				if !strings.Contains(r.Error, c.want) || r.Unsupported {
					t.Errorf("the error is %q, want one with %q", r.Error, c.want)
				}
				if c.system.closed != c.workload.Clients {
					t.Errorf("%d of %d clients were closed", c.system.closed, c.workload.Clients)
				}
			})
		})
	}
}

func TestUnorderedTokensAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if r := run(t, workload.Contended(3), unordered{&fake{stale: true}}); r.Error != "" || r.Inversions < r.Operations {
			t.Errorf("the result is %+v", r)
		}
	})
}

func TestUnsupportedFeaturesAreNotFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		workload workload.Workload
		system   *fake
	}{
		"no renewal": {workload.Renew(2), &fake{refusesRenew: true}},
		"no batches": {workload.Batches(2, 10), &fake{noBatches: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				if r := run(t, c.workload, c.system); !r.Unsupported {
					t.Errorf("the result is %+v", r)
				}
			})
		})
	}
}
