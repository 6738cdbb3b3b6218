package store_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/soak"
	"github.com/paddock-lock/paddock/store"
)

// TestADirectURLIsNeverRefused opens stores one after the other while the server is busy.
func TestADirectURLIsNeverRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range soak.Rounds(3, 4) {
		busy := connect(t, url)
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := busy.Exec(t.Context(), "select count(*) from generate_series(1, 100000)"); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	var took time.Duration
	starts := soak.Rounds(8, 50)
	for range starts {
		begun := time.Now()
		s, err := store.Open(t.Context(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		took += time.Since(begun)
		s.Close()
	}
	t.Logf("opening took %v on average", took/time.Duration(starts))
}

// TestEachWorkerHasAConnection: more workers would wait for each other's connections, and take that for an outage.
func TestEachWorkerHasAConnection(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	for _, c := range []struct {
		conns   string
		workers int
		advice  string // empty: enough
	}{
		{"", 4, ""}, {"", 5, "connections for 4; use fewer, or set pool_max_conns to 23"}, {"&pool_max_conns=23", 5, ""},
		{"&pool_max_conns=7", 1, ""}, {"&pool_max_conns=7", 2, "set pool_max_conns to 11"},
	} {
		s, err := store.Open(t.Context(), url+c.conns, store.Options{BatchWorkers: c.workers})
		if err == nil {
			s.Close()
		}
		if (err == nil) != (c.advice == "") || err != nil && !strings.Contains(err.Error(), c.advice) {
			t.Errorf("%d workers with %q: %v, want %q", c.workers, c.conns, err, c.advice)
		}
	}
}
