package integration_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// BenchmarkInTree acquires and releases over HTTP, with a request for each call, locks on the third level of a tree and
// locks outside of it by turns. It reports the median of how much longer those in the tree take. Each client has one.
func BenchmarkInTree(b *testing.B) {
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(clients, " clients"), func(b *testing.B) {
			c := replica.Connect(b, client.Options{BaseURL: replica.Start(b, pgtest.URL(b)), NoCoalesce: true})
			if _, err := c.DeclareTree(b.Context(), "tree"); err != nil {
				b.Fatal(err)
			}
			var ratios []float64
			for b.Loop() {
				outside := timePairs(b, c, clients, "one:")
				ratios = append(ratios, float64(timePairs(b, c, clients, "tree:a:"))/float64(outside))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "median-ratio")
		})
	}
}

// timePairs returns how long it takes until each client has acquired and released its lock 50 times.
func timePairs(b *testing.B, c *client.Client, clients int, prefix string) time.Duration {
	b.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			for range 50 {
				a := lock.Acquire{Locks: lock.One(fmt.Sprint(prefix, i)), Holder: "worker", LeaseID: lock.LeaseID(uuid.New()), TTL: time.Minute}
				if _, err := c.Acquire(b.Context(), a); err != nil {
					b.Error(err)
					return
				}
				if err := c.Release(b.Context(), lock.Release{Locks: []string{a.Locks[0].Name}, LeaseID: a.LeaseID}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(began)
}
