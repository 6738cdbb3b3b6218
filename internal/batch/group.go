package batch

import (
	"context"
	"errors"
	"runtime"
	"sync"
)

// ErrFull says that too many calls wait already; the call was not taken.
var ErrFull = errors.New("too many calls wait already")

// A Group runs calls in batches, one batch at a time. Make one with New.
type Group[Req, Res any] struct {
	run      func([]*Call[Req, Res])
	max      int
	maxQueue int

	mu    sync.Mutex
	queue []*Call[Req, Res]
	busy  bool
	idle  sync.Cond // signalled when busy turns false
}

// New returns a Group that hands up to max calls at a time to run, which answers
// each of them, sooner or later. Up to maxQueue calls wait for that.
func New[Req, Res any](max, maxQueue int, run func([]*Call[Req, Res])) *Group[Req, Res] {
	g := &Group[Req, Res]{run: run, max: max, maxQueue: maxQueue}
	g.idle.L = &g.mu
	return g
}

// Do submits req and waits for its answer. When ctx ends first it returns an
// *Abandoned error, which tells whether the call may have been run; when too many
// calls wait, ErrFull.
func (g *Group[Req, Res]) Do(ctx context.Context, req Req) (Res, error) {
	c := NewCall[Req, Res](req)
	if !g.offer(c) {
		return c.res, ErrFull
	}
	select {
	case <-c.answered:
		return c.res, c.err
	case <-ctx.Done():
		return c.leave(context.Cause(ctx))
	}
}

// Add puts the calls at the end of the queue, however long it is: they have been
// taken before.
func (g *Group[Req, Res]) Add(calls ...*Call[Req, Res]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(calls...)
}

// offer puts the call at the end of the queue, unless that is full.
func (g *Group[Req, Res]) offer(c *Call[Req, Res]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) >= g.maxQueue {
		return false
	}
	g.add(c)
	return true
}

func (g *Group[Req, Res]) add(calls ...*Call[Req, Res]) {
	g.queue = append(g.queue, calls...)
	if !g.busy && len(g.queue) > 0 {
		g.busy = true
		go g.work()
	}
}

// Wait returns once the queue is empty and no batch runs.
func (g *Group[Req, Res]) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.busy {
		g.idle.Wait()
	}
}

func (g *Group[Req, Res]) work() {
	for calls := g.next(); calls != nil; calls = g.next() {
		g.run(calls)
	}
}

// next takes the next batch from the queue. When there is none it returns nil,
// and the Group is idle. It yields once before: whom the last batch has answered
// often has the next call ready, which else would just miss this one.
func (g *Group[Req, Res]) next() []*Call[Req, Res] {
	runtime.Gosched()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.queue, g.busy = nil, false
		g.idle.Broadcast()
		return nil
	}
	n := min(len(g.queue), g.max)
	batch := g.queue[:n:n]
	g.queue = g.queue[n:]
	return batch
}
