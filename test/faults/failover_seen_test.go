package faults_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/test/internal/pgcluster"
)

// operatorsSeeAFailOver asks each replica at each step how the service is: it answers soon, and tells the step.
func operatorsSeeAFailOver(t *testing.T, program string) {
	s := newClusterHarness(t, program, pgcluster.Options{})
	s.serve(2, s.cluster.URL(), "--migrate")
	a := lock.Acquire{Locks: lock.One("seen"), LeaseID: lock.LeaseID(uuid.New()), Holder: "h", TTL: 30 * time.Second}
	s.eventually("a lock is granted, whose TTL grants will be paused for", func() bool { return s.tryLock(0, a) == nil })

	s.allSee("both replicas and the standbys", func(d paddock.DatabaseInfo) bool {
		behind := func(b paddock.StandbyInfo) bool {
			return b.State != "streaming" || b.LagBytes == nil || *b.LagBytes > 1<<20
		}
		return d.Problem == "" && !d.Server.Standby && alive(d) == 2 && len(d.Standbys) > 0 && !slices.ContainsFunc(d.Standbys, behind)
	})
	before := s.cluster.Primary()
	s.must(before.Kill())
	s.allSee("what was known before the outage", func(d paddock.DatabaseInfo) bool {
		return strings.Contains(d.Problem, "othing listens on") && strings.Contains(d.Problem, "it is a standby") && len(d.Replicas) == 2 &&
			d.Epoch.Number == 1 && d.Age > 0
	})
	_, err := s.cluster.Promote(t.Context())
	s.must(err)
	s.allSee("the pause of the new epoch, and the server that was promoted", func(d paddock.DatabaseInfo) bool {
		return d.Problem == "" && !d.Server.Standby && d.Epoch.Number == 2 && d.Epoch.Reason != "installed" && d.GrantsPaused() > 0 && alive(d) == 2
	})
}

// alive returns how many replicas send heartbeats.
func alive(d paddock.DatabaseInfo) (n int) {
	for _, r := range d.Replicas {
		if r.Alive {
			n++
		}
	}
	return n
}

// allSee waits until each replica tells so of the database. Each answer must come within a few seconds.
func (s *clusterHarness) allSee(what string, so func(paddock.DatabaseInfo) bool) {
	s.t.Helper()
	var last paddock.ServiceInfo
	for i := range s.services {
		s.eventually("operators see "+what, func() bool {
			ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Second)
			defer cancel()
			var err error
			if last, err = s.replica(i).(meteredService).Service.(*client.Client).ServiceInfo(ctx); err != nil {
				s.t.Fatalf("replica %d: %v", i, err)
			}
			return so(last.Databases[0])
		})
	}
	s.t.Logf("operators see %s: %+v", what, last.Databases[0])
}
