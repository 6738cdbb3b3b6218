package batch

import (
	"sync"
	"time"
)

// workerIdleTimeout is for how long a goroutine of a Crew waits for more to do.
const workerIdleTimeout = time.Second

// A WorkerPool runs functions beside each other, on goroutines that stay for a while when they
// are done: what is run thousands of times a second finds a stack that has grown already.
// Make one with NewCrew; a nil one keeps none.
type WorkerPool struct {
	jobs    chan func() // received from by those who have nothing to do
	closed  chan struct{}
	once    sync.Once // closes dismissed
	workers sync.WaitGroup
}

// NewWorkerPool returns a Crew of nobody yet.
func NewWorkerPool() *WorkerPool {
	return &WorkerPool{jobs: make(chan func()), closed: make(chan struct{})}
}

// Go has f run at once.
func (c *WorkerPool) Go(f func()) {
	if c == nil {
		go f()
		return
	}
	select {
	case c.jobs <- f:
	default:
		c.workers.Go(func() { c.work(f) })
	}
}

// Close has nobody stay any longer, and returns when all have gone. It is called when
// nothing more is to be run, and may be called again.
func (c *WorkerPool) Close() {
	c.once.Do(func() { close(c.closed) })
	c.workers.Wait()
}

func (c *WorkerPool) work(f func()) {
	stay := time.NewTimer(workerIdleTimeout)
	defer stay.Stop()
	for {
		f()
		stay.Reset(workerIdleTimeout)
		select {
		case f = <-c.jobs:
		case <-stay.C:
			return
		case <-c.closed:
			return
		}
	}
}
