package locktest_test

import (
	"flag"
	"os"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/lock"
)

// TestMain runs many cases at once, because they wait for leases and sessions to end and compute next to nothing.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	locks := memlock.New().Replica(1)
	locktest.Run(t, func(*testing.T) lock.Service { return locks })
}

func TestTwoReplicasConform(t *testing.T) {
	t.Parallel()
	m := memlock.New()
	both := locktest.AtRandom(m.Replica(1), m.Replica(2))
	locktest.Run(t, func(*testing.T) lock.Service { return both })
}

func TestBatchesConform(t *testing.T) {
	t.Parallel()
	locks := locktest.Batched(memlock.New().Replica(1))
	locktest.Run(t, func(*testing.T) lock.Service { return locks })
}
