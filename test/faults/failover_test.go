package faults_test

import (
	"bytes"
	"context"
	"flag"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/pgcluster"
	"github.com/paddock-lock/paddock/verify"
	"github.com/paddock-lock/paddock/verify/workload"
)

var flagFailOvers = repeats{
	flag.Int("faults.failovers", 0, "fail-overs in a row in TestFailOversAndRestores; 0: 2, or 10 in the long form"),
	2, 10}

// grantsBetweenFaults is how many locks are granted before the next fault. Load on three servers takes much CPU, so the
// short form has half as much.
func grantsBetweenFaults() int64 {
	if *flagLong {
		return 200
	}
	return 100
}

// TestFailOversAndRestores replaces the primary by a standby or a restored backup. The long form also does so without a
// quorum, and without the check of the epoch: both must be found.
func TestFailOversAndRestores(t *testing.T) {
	t.Parallel()
	normal := program(t)
	t.Run("fail-overs in a row under quorum lose nothing",
		func(t *testing.T) { t.Parallel(); failOversInARow(t, normal) })
	t.Run("a suspect lease outlives a fail-over under quorum",
		func(t *testing.T) { t.Parallel(); suspectOutlivesFailOver(t, normal) })
	t.Run("operators see each step of a fail-over", func(t *testing.T) { t.Parallel(); operatorsSeeAFailOver(t, normal) })
	t.Run("a pooler in transaction mode is supported", func(t *testing.T) { t.Parallel(); behindAPooler(t, normal) })
	t.Run("a promoted lagging standby grants nothing twice",
		func(t *testing.T) { t.Parallel(); laggingStandbyPromoted(t, normal) })
	t.Run("a restored backup grants nothing twice", func(t *testing.T) { t.Parallel(); backupRestored(t, normal) })
	if *flagLong {
		t.Run("without a quorum the checker finds the loss",
			func(t *testing.T) { t.Parallel(); lossMustBeFound(t, normal) })
		t.Run("without the epoch check locks are granted twice", func(t *testing.T) { t.Parallel(); withoutEpochCheck(t) })
	}
}

// failOversInARow kills one primary after the other under load, and then does a planned switchover.
func failOversInARow(t *testing.T, program string) {
	s := newRestrictedCluster(t, program)
	s.serve(2, s.appURL())
	u := s.underLoad("failover")
	var gaps []time.Duration
	for range flagFailOvers.count() {
		lost := s.cluster.Primary()
		gaps = append(gaps, u.breakAndMeasure("kill -9 of the primary", s.failOver))
		s.must(s.cluster.Rejoin(t.Context(), lost))
	}
	t.Logf("no grants after a kill of the primary for: median %v, longest %v of %d", median(gaps), slices.Max(gaps),
		len(gaps))
	old := s.cluster.Primary()
	t.Logf("no grants during a planned switchover for %v", u.breakAndMeasure("switchover", s.switchOver))
	if answer, err := old.Ask(t.Context(), "show transaction_read_only"); err != nil || answer != "on" {
		t.Errorf("the old primary came back with transaction_read_only %s: %v", answer, err)
	}
	u.checkHistory()
}

func (s *clusterHarness) failOver(ctx context.Context) error {
	if err := s.cluster.Primary().Kill(); err != nil {
		return err
	}
	_, err := s.cluster.Promote(ctx)
	return err
}

func (s *clusterHarness) switchOver(ctx context.Context) error { return s.cluster.Switchover(ctx) }

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// A loadedCluster is a cluster owner clients go on while faults are injected.
type loadedCluster struct {
	*clusterHarness
	prefix string
	rec    *verify.Recorder
	stop   context.CancelFunc
	all    sync.WaitGroup
	stats  workload.Stats
	err    error
}

// underLoad starts clients that run until checkHistory.
func (s *clusterHarness) underLoad(prefix string) *loadedCluster {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	u := &loadedCluster{clusterHarness: s, prefix: prefix, rec: verify.NewRecorder(), stop: cancel}
	u.all.Go(func() {
		u.stats, u.err = workload.Run(ctx, u.rec,
			workload.Options{Services: s.services, Prefix: prefix, Clients: 24, Locks: 24, Seed: 5, Subscribers: true, Tree: true,
				Policy: true, Hold: s.quorum})
		if ctx.Err() == nil {
			s.t.Errorf("the load ended by itself: %v", u.err) // what waits for its grants waits in vain
		}
	})
	s.t.Cleanup(func() { cancel(); u.all.Wait() })
	return u
}

// breakAndMeasure waits until the service is under load, injects a fault, and returns the longest time
// without a grant.
func (u *loadedCluster) breakAndMeasure(what string, do func(context.Context) error) time.Duration {
	u.t.Helper()
	u.awaitGrants(grantsBetweenFaults())
	over := u.rec.MarkFault(what)
	u.meter.reset()
	u.must(do(u.t.Context()))
	over()
	u.awaitGrants(grantsBetweenFaults() / 2)
	return u.meter.longestGap()
}

// checkHistory ends the load and checks the history.
func (u *loadedCluster) checkHistory() {
	u.t.Helper()
	h, report := u.finish()
	var text bytes.Buffer
	u.must(u.stats.WriteText(&text))
	u.must(report.WriteText(&text))
	u.t.Logf("%s\n%v", text.String(), u.stats.Subscribers)
	if !report.OK() {
		u.t.Error("the history has violations")
	}
	u.checkTokensUnique(h)
}

func (u *loadedCluster) finish() (verify.History, verify.Report) {
	u.t.Helper()
	u.awaitGrants(grantsBetweenFaults())
	u.stop()
	u.all.Wait()
	u.must(u.err)
	h := u.rec.History()
	var err error
	h.Events, err = verify.Collect(u.t.Context(), u.first(), u.prefix)
	u.must(err)
	return h, h.Check(verify.CheckOptions{AllowOvertaking: true, AllowWaiters: true})
}

// lossMustBeFound proves that failOversInARow can fail: it promotes a standby that has not received
// commits for which no standby had to wait.
func lossMustBeFound(t *testing.T, program string) {
	s := newClusterHarness(t, program, pgcluster.Options{})
	s.serve(2, s.cluster.URL(), "--migrate")
	u, l := s.underLoad("lossy"), s.laggingFailOver()
	u.breakAndMeasure("fail-over to a lagging standby", func(ctx context.Context) error {
		if err := l.before(ctx); err != nil {
			return err
		}
		u.awaitGrants(grantsBetweenFaults() / 2)
		return l.trigger(ctx)
	})
	h, report := u.finish()
	found := 0
	for _, c := range report.Checks {
		found += len(c.Violations)
	}
	t.Logf("%d violations were found; %v: %s", found, u.stats.Subscribers, summarize(report))
	if report.OK() {
		t.Error("the lost grants were not found")
	}
	u.checkTokensUnique(h)
}

// checkTokensUnique checks that no token of a lock was granted to two leases, except in one shared phase. Other losses
// are in the report.
func (u *loadedCluster) checkTokensUnique(h verify.History) {
	type grant struct {
		name  string
		token lock.Token
	}
	owners, unknown := map[grant]lock.LeaseID{}, 0 // zero for a shared one
	for _, c := range h.Calls {
		if c.Outcome() == verify.Unknown {
			unknown++
		}
		g, granted := c.Response.(lock.Grant)
		if !granted || c.Verb != verify.Acquire {
			continue
		}
		leases := g.Leases
		if leases == nil {
			leases = []lock.Lease{g.Lease}
		}
		for _, l := range leases {
			id := l.ID
			if l.Mode == lock.Shared {
				id = lock.LeaseID{}
			}
			if before, ok := owners[grant{l.Name, l.Token}]; ok && before != id {
				u.t.Errorf("token %d of %s was granted twice", l.Token, l.Name)
			}
			owners[grant{l.Name, l.Token}] = id
		}
	}
	u.t.Logf("%d tokens, each granted once; %d answers were lost", len(owners), unknown)
}
