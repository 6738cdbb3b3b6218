package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// BenchmarkJoins measures how long a call takes to join the queue of a held lock at which others wait already, where
// 500 calls come at once. The rate with 1,000 waiters should be at least half of that with 10.
func BenchmarkJoins(b *testing.B) {
	for _, ahead := range []int{10, 1000} {
		b.Run(fmt.Sprintf("behind %d", ahead), func(b *testing.B) { benchmarkJoins(b, ahead, 500) })
	}
}

func benchmarkJoins(b *testing.B, ahead, burst int) {
	s, err := store.Open(b.Context(), pgtest.URL(b), store.Options{MaxWaiters: 1_000_000, Bounds: lock.Bounds{MaxWaiters: 1_000_000}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	joins := 0
	var took time.Duration
	for b.Loop() {
		name := fmt.Sprintf("crowded:%d", joins)
		if _, err := s.Acquire(b.Context(), lock.Acquire{Name: name, Holder: "h", TTL: time.Hour}); err != nil {
			b.Fatal(err)
		}
		ctx, leave := context.WithCancel(b.Context())
		var calls sync.WaitGroup
		join := func(n int) {
			for range n {
				calls.Go(func() {
					_, _ = s.Acquire(ctx, lock.Acquire{Name: name, Holder: "w", TTL: time.Hour, Wait: lock.MaxWait}) // it ends with ctx
				})
			}
		}
		queued := func(n int) {
			for {
				l, err := s.Lock(b.Context(), name)
				if err != nil {
					b.Fatal(err)
				}
				if l.Waiters >= n {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
		join(ahead)
		queued(ahead)
		began := time.Now()
		join(burst)
		queued(ahead + burst)
		took += time.Since(began)
		joins += burst
		leave()
		calls.Wait()
	}
	b.ReportMetric(float64(joins)/took.Seconds(), "joins/s")
}
