package engine

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkerPoolRunsEverythingConcurrently starts functions that wait for each other.
func TestWorkerPoolRunsEverythingConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := newGoroutinePool()
		const n = 10
		var started, ended sync.WaitGroup
		started.Add(n)
		for range n {
			ended.Add(1)
			pool.Go(func() {
				started.Done()
				started.Wait()
				ended.Done()
			})
		}
		ended.Wait()
		pool.Close()
		pool.Close()
	})
}

// TestIdleWorkersExit relies on synctest: the bubble ends only when all goroutines have ended.
func TestIdleWorkersExit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := newGoroutinePool()
		began := time.Now()
		for range 3 {
			done := make(chan struct{})
			pool.Go(func() { close(done) })
			<-done
			synctest.Wait() // the worker is idle now
		}
		if passed := time.Since(began); passed != 0 {
			t.Errorf("the runs took %v, want no time", passed)
		}
		time.Sleep(time.Minute) // idle workers exit without Close
	})
}
