package cell_test

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/cell"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// BenchmarkPairs acquires and releases a lock of its own in each of 512 calls at once: of a store, of a router with one
// cell, and of a router with four, which share one server here.
func BenchmarkPairs(b *testing.B) {
	b.Run("store", func(b *testing.B) { pairs(b, replica.Store(b, pgtest.URL(b), store.Options{})) })
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("cells=%d", n), func(b *testing.B) { pairs(b, over(b, databases(b, n))) })
	}
}

func pairs(b *testing.B, s paddock.Service) {
	b.Helper()
	var last atomic.Int64
	b.SetParallelism(256) // times two cores
	b.ResetTimer()
	b.RunParallel(func(next *testing.PB) {
		name := "bench-" + strconv.FormatInt(last.Add(1), 10) + ":lock"
		for next.Next() {
			g, err := s.Acquire(b.Context(), lock.Acquire{Locks: lock.One(name), Holder: "worker", LeaseID: lock.LeaseID(uuid.New())})
			if err == nil {
				err = s.Release(b.Context(), lock.Release{Locks: []string{name}, LeaseID: g.ID})
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}

// nothing is a cell that answers at once.
type nothing struct{ fixed }

func (nothing) Acquire(context.Context, lock.Acquire) (lock.Grant, error) { return lock.Grant{}, nil }

// BenchmarkRouting is what the router adds to a call.
func BenchmarkRouting(b *testing.B) {
	a := acquireOf("billing:eu:42")
	call := func(b *testing.B, s paddock.Service) {
		for b.Loop() {
			if _, err := s.Acquire(b.Context(), a); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("without", func(b *testing.B) { call(b, nothing{}) })
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprintf("cells=%d", n), func(b *testing.B) {
			var names []string
			for _, m := range placed(n) {
				names = append(names, m.Self)
			}
			r := cell.New(names...)
			for _, m := range placed(n) {
				r.Set(m.Self, nothing{fixed{placed: m}})
			}
			b.ReportAllocs()
			call(b, r)
		})
	}
}
