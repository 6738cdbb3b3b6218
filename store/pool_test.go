package store_test

import (
	"context"
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
	for range 4 {
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
