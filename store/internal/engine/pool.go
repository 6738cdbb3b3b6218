package engine

import (
	"sync"
	"time"
)

// goroutineIdleTimeout is how long an idle goroutine of a goroutinePool waits for more to do.
const goroutineIdleTimeout = time.Second

// A goroutinePool runs functions concurrently on goroutines that are kept for a short time
// after each run. Functions that run thousands of times a second thus reuse stacks that
// have already grown. Make one with newGoroutinePool; a nil goroutinePool starts a goroutine for each
// function.
type goroutinePool struct {
	jobs    chan func() // received by idle goroutines
	closed  chan struct{}
	once    sync.Once // closes closed
	running sync.WaitGroup
}

// newGoroutinePool returns an empty goroutinePool.
func newGoroutinePool() *goroutinePool {
	return &goroutinePool{jobs: make(chan func()), closed: make(chan struct{})}
}

// Go runs f in another goroutine without delay.
func (p *goroutinePool) Go(f func()) {
	if p == nil {
		go f()
		return
	}
	select {
	case p.jobs <- f:
	default:
		p.running.Go(func() { p.work(f) })
	}
}

// Close ends idle goroutines and returns when all have ended. Go must not be called after
// Close; Close may be called again.
func (p *goroutinePool) Close() {
	p.once.Do(func() { close(p.closed) })
	p.running.Wait()
}

func (p *goroutinePool) work(f func()) {
	idle := time.NewTimer(goroutineIdleTimeout)
	defer idle.Stop()
	for {
		f()
		idle.Reset(goroutineIdleTimeout)
		select {
		case f = <-p.jobs:
		case <-idle.C:
			return
		case <-p.closed:
			return
		}
	}
}
