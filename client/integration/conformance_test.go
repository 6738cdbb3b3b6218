package integration_test

import (
	"os"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
)

// TestMain runs many tests at once, because these do little else than wait for leases and sessions to end.
func TestMain(m *testing.M) { os.Exit(pgtest.M{M: m, Parallel: 16}.Run()) }

func TestClientConforms(t *testing.T) {
	t.Parallel()
	c := replica.Client(t, pgtest.URL(t))
	locktest.Run(t, c)
}

func TestBatchedClientConforms(t *testing.T) {
	t.Parallel()
	c := locktest.Batched(replica.Client(t, pgtest.URL(t)))
	locktest.Run(t, c)
}
