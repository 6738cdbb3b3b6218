package engine

import (
	"sync"
	"time"
)

// workerIdleTimeout is how long an idle goroutine of a workerPool waits for more work.
const workerIdleTimeout = time.Second

// A workerPool runs functions concurrently on goroutines that are kept for a short time
// after each run. Functions that run thousands of times a second thus reuse stacks that
// have already grown. Make one with newWorkerPool; a nil workerPool starts a goroutine for each
// function.
type workerPool struct {
	jobs    chan func() // received by idle workers
	closed  chan struct{}
	once    sync.Once // closes closed
	workers sync.WaitGroup
}

// newWorkerPool returns an empty workerPool.
func newWorkerPool() *workerPool {
	return &workerPool{jobs: make(chan func()), closed: make(chan struct{})}
}

// Go runs f in another goroutine without delay.
func (p *workerPool) Go(f func()) {
	if p == nil {
		go f()
		return
	}
	select {
	case p.jobs <- f:
	default:
		p.workers.Go(func() { p.work(f) })
	}
}

// Close ends idle workers and returns when all have ended. Go must not be called after
// Close; Close may be called again.
func (p *workerPool) Close() {
	p.once.Do(func() { close(p.closed) })
	p.workers.Wait()
}

func (p *workerPool) work(f func()) {
	idle := time.NewTimer(workerIdleTimeout)
	defer idle.Stop()
	for {
		f()
		idle.Reset(workerIdleTimeout)
		select {
		case f = <-p.jobs:
		case <-idle.C:
			return
		case <-p.closed:
			return
		}
	}
}
