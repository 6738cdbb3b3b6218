package batch_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/internal/batch"
)

// TestWorkerPoolRunsEverythingConcurrently: nobody waits for another, however many there are.
func TestWorkerPoolRunsEverythingConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		crew := batch.NewWorkerPool()
		const n = 10
		var there, gone sync.WaitGroup
		there.Add(n)
		for range n {
			gone.Add(1)
			crew.Go(func() {
				there.Done()
				there.Wait()
				gone.Done()
			})
		}
		gone.Wait()
		crew.Close()
		crew.Close()
	})
}

// TestIdleWorkersExit: the bubble ends only if all its goroutines do.
func TestIdleWorkersExit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		crew := batch.NewWorkerPool()
		began := time.Now()
		for range 3 {
			done := make(chan struct{})
			crew.Go(func() { close(done) })
			<-done
			synctest.Wait() // it waits for more
		}
		if passed := time.Since(began); passed != 0 {
			t.Errorf("it took %v", passed)
		}
		time.Sleep(time.Minute) // those who stayed go by themselves, too
	})
}
