package store_test

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	s := openWith(t, pgtest.URL(t), store.Options{RenewalLinger: 4 * time.Millisecond})
	locktest.Run(t, func(*testing.T) lock.Service { return s })
}

func TestBatchesConform(t *testing.T) {
	t.Parallel()
	s := locktest.Batched(openWith(t, pgtest.URL(t), store.Options{BatchWorkers: 4}))
	locktest.Run(t, func(*testing.T) lock.Service { return s })
}
