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
	"github.com/paddock-lock/paddock/store"
)

// BenchmarkSetOfTwo acquires and releases sets of two locks and single locks by turns, and reports the median of how
// much longer a set takes: over HTTP, with a request for each call, and in the store alone.
func BenchmarkSetOfTwo(b *testing.B) {
	compare(b, func(b *testing.B, s lock.Service, client int) {
		acquireAndRelease(b, s, fmt.Sprint("two:a:", client), fmt.Sprint("two:b:", client))
	})
}

// BenchmarkInTree does the same with a lock on the third level of a tree, in which each client has one.
func BenchmarkInTree(b *testing.B) {
	compare(b, func(b *testing.B, s lock.Service, client int) { acquireAndRelease(b, s, fmt.Sprint("tree:a:", client)) })
}

// compare reports the median of how much longer a run takes than one with a single lock, by turns.
func compare(b *testing.B, run func(b *testing.B, s lock.Service, client int)) {
	for name, connect := range map[string]func(b *testing.B) lock.Service{
		"HTTP": func(b *testing.B) lock.Service {
			return replica.Connect(b, client.Options{BaseURL: replica.Start(b, pgtest.URL(b)), NoCoalesce: true})
		},
		"store": func(b *testing.B) lock.Service {
			s, err := store.Open(b.Context(), pgtest.URL(b), store.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(s.Close)
			return s
		},
	} {
		for _, clients := range []int{1, 16, 64} {
			b.Run(fmt.Sprint(name, "/", clients, " clients"), func(b *testing.B) {
				s := connect(b)
				if _, err := s.DeclareTree(b.Context(), "tree"); err != nil {
					b.Fatal(err)
				}
				var ratios []float64
				for b.Loop() {
					one := timeOf(b, clients, func(client int) { acquireAndRelease(b, s, fmt.Sprint("one:", client)) })
					other := timeOf(b, clients, func(client int) { run(b, s, client) })
					ratios = append(ratios, float64(other)/float64(one))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "median-ratio")
			})
		}
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

// acquireAndRelease acquires and releases the locks together, 50 times.
func acquireAndRelease(b *testing.B, s lock.Service, names ...string) {
	for range 50 {
		a, r := lock.Acquire{Holder: "worker", LeaseID: lock.LeaseID(uuid.New()), TTL: time.Minute}, lock.Release{}
		if r.LeaseID = a.LeaseID; len(names) == 1 {
			a.Name, r.Name = names[0], names[0]
		} else {
			for _, name := range names {
				a.Set = append(a.Set, lock.Member{Name: name})
			}
			r.Set = names
		}
		if _, err := s.Acquire(b.Context(), a); err != nil {
			b.Error(err)
			return
		}
		if err := s.Release(b.Context(), r); err != nil {
			b.Error(err)
			return
		}
	}
}
