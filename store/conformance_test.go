package store_test

import (
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/locktest"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/migrations"
	"github.com/paddock-lock/paddock/store"
)

// TestConformance uses two replicas, which have different numbers of workers: each call goes to either one.
func TestConformance(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	locktest.Run(t, replica.Store(t, url, store.Options{}), replica.Store(t, url, store.Options{BatchWorkers: 4}))
}

// TestBatchesConform uses a schema of another name, in a database without the usual one.
func TestBatchesConform(t *testing.T) {
	t.Parallel()
	url := pgtest.EmptyURL(t)
	if err := migrations.Up(t.Context(), url, "team_b", nil); err != nil {
		t.Fatal(err)
	}
	s := locktest.Batched(replica.Store(t, url, store.Options{BatchWorkers: 4, Schema: "team_b"}))
	locktest.Run(t, s)
}
