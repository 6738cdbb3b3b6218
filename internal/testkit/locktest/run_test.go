package locktest_test

import (
	"os"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/testmain"
)

// TestMain runs many cases at once. Outside of bubbles they wait for leases and sessions to end.
func TestMain(m *testing.M) { os.Exit(testmain.M{M: m, Parallel: 16}.Run()) }

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	locktest.RunInBubbles(t, func() []paddock.Service { return []paddock.Service{memlock.New().Replica(1)} })
}

func TestTwoReplicasConform(t *testing.T) {
	t.Parallel()
	locktest.RunInBubbles(t, func() []paddock.Service {
		m := memlock.New()
		return []paddock.Service{m.Replica(1), m.Replica(2)}
	})
}

func TestBatchesConform(t *testing.T) {
	t.Parallel()
	locktest.Run(t, locktest.Batched(memlock.New().Replica(1)))
}
