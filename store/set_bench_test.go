package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// BenchmarkSetOfTwo acquires and releases sets of two locks and single locks by turns, and reports the median of how
// much longer a set takes.
func BenchmarkSetOfTwo(b *testing.B) {
	const pairs = 50
	for _, clients := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(clients, " clients"), func(b *testing.B) {
			s, err := store.Open(b.Context(), pgtest.URL(b), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var ratios []float64
			for b.Loop() {
				one := timeOf(b, clients, func(client int) { acquireAndRelease(b, s, pairs, fmt.Sprint("one:", client)) })
				two := timeOf(b, clients, func(client int) {
					acquireAndRelease(b, s, pairs, fmt.Sprint("two:a:", client), fmt.Sprint("two:b:", client))
				})
				ratios = append(ratios, float64(two)/float64(one))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "median-ratio")
		})
	}
}

// timeOf returns how long it takes until all clients are done.
func timeOf(b *testing.B, clients int, run func(client int)) time.Duration {
	b.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { run(i) })
	}
	all.Wait()
	return time.Since(began)
}

func acquireAndRelease(b *testing.B, s lock.Service, pairs int, names ...string) {
	for range pairs {
		a := lock.Acquire{Holder: "worker", LeaseID: newID(), TTL: time.Minute}
		for _, name := range names {
			a.Set = append(a.Set, lock.Member{Name: name})
		}
		if _, err := s.Acquire(b.Context(), a); err != nil {
			b.Error(err)
			return
		}
		if err := s.Release(b.Context(), lock.Release{Set: names, LeaseID: a.LeaseID}); err != nil {
			b.Error(err)
			return
		}
	}
}
