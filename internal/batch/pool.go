package batch

import (
	"sync"
	"time"
)

// workerIdleTimeout is how long an idle goroutine of a WorkerPool waits for more work.
const workerIdleTimeout = time.Second

// A WorkerPool runs functions concurrently on goroutines that are kept for a short time
// after each run. Functions that run thousands of times a second thus reuse stacks that
// have already grown. Make one with NewWorkerPool; a nil WorkerPool starts a goroutine for each
// function.
type WorkerPool struct {
	jobs    chan func() // received by idle workers
	closed  chan struct{}
	once    sync.Once // closes closed
	workers sync.WaitGroup
}

// NewWorkerPool returns an empty WorkerPool.
func NewWorkerPool() *WorkerPool {
	return &WorkerPool{jobs: make(chan func()), closed: make(chan struct{})}
}

// Go runs f in another goroutine without delay.
func (p *WorkerPool) Go(f func()) {
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
func (p *WorkerPool) Close() {
	p.once.Do(func() { close(p.closed) })
	p.workers.Wait()
}

func (p *WorkerPool) work(f func()) {
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
