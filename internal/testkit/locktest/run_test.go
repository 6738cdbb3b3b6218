package locktest_test

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/memlock"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

func TestMain(m *testing.M) { pgtest.Main(m) } // many cases at once, because most of them wait

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
