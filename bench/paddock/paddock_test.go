package paddock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-lock/paddock/bench/campaign"
	"github.com/paddock-lock/paddock/bench/paddock"
	"github.com/paddock-lock/paddock/bench/result"
	"github.com/paddock-lock/paddock/bench/system"
	"github.com/paddock-lock/paddock/bench/systemtest"
	"github.com/paddock-lock/paddock/bench/workload"
)

// binary builds paddock and returns its path.
func binary(t *testing.T) string {
	t.Helper()
	path, err := paddock.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPaddock(t *testing.T) {
	t.Parallel()
	built := binary(t)
	for name, replicas := range map[string]int{"one": 1, "two": 2} {
		t.Run(name+" over HTTP", func(t *testing.T) {
			t.Parallel()
			d := &paddock.Deployment{Binary: built, Replicas: replicas}
			systemtest.Run(t, &paddock.HTTP{Deployment: d, SystemName: "paddock", SystemTitle: "Paddock"}, systemtest.Traits{})
		})
	}
	t.Run("one through the SDK", func(t *testing.T) {
		t.Parallel()
		systemtest.Run(t, &paddock.SDK{Deployment: &paddock.Deployment{Binary: built}, SystemName: "paddock-sdk", SystemTitle: "SDK"}, systemtest.Traits{})
	})
	t.Run("one through guards", func(t *testing.T) {
		t.Parallel()
		sdk := &paddock.SDK{Deployment: &paddock.Deployment{Binary: built}, SystemName: "paddock-guards", SystemTitle: "guards"}
		systemtest.Run(t, paddock.Guards{SDK: sdk}, systemtest.Traits{NoRenewal: true})
	})
	t.Run("sessions", func(t *testing.T) {
		t.Parallel()
		s := &paddock.Sessions{Leases: 600}
		s.Deployment, s.SystemName = &paddock.Deployment{Binary: built}, "paddock-session"
		dir := t.TempDir()
		if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil { // PostgreSQL does not run as root
			t.Fatal(err)
		}
		done := func(r result.Run) { // a lease that is left would make the second round fail
			if r.Error != "" {
				t.Error(r)
			}
		}
		err := campaign.Campaign{Systems: []system.System{s}, Workloads: []workload.Workload{workload.Heartbeats()}, Rounds: 2, Dir: dir, Done: done}.Run(t.Context())
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("with subscribers", func(t *testing.T) {
		t.Parallel()
		s := &paddock.Subscribed{Streams: 3}
		s.Deployment, s.SystemName, s.SystemTitle = &paddock.Deployment{Binary: built}, "paddock-streams", "Paddock"
		systemtest.Run(t, s, systemtest.Traits{})
	})
	t.Run("prefilled", func(t *testing.T) {
		t.Parallel()
		s := &paddock.Prefilled{Locks: 1000, Events: 1000}
		s.Deployment, s.SystemName, s.SystemTitle = &paddock.Deployment{Binary: built}, "paddock-1k", "Paddock"
		systemtest.Run(t, s, systemtest.Traits{})
	})
}
