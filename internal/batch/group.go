package batch

import (
	"context"
	"sync"
)

// A Group runs calls in batches, one batch at a time. Make one with New.
type Group[Req, Res any] struct {
	run func([]*Call[Req, Res])
	max int

	mu    sync.Mutex
	queue []*Call[Req, Res]
	busy  bool
	idle  sync.Cond // signalled when busy turns false
}

// New returns a Group that hands up to max calls at a time to run, which answers
// each of them, sooner or later.
func New[Req, Res any](max int, run func([]*Call[Req, Res])) *Group[Req, Res] {
	g := &Group[Req, Res]{run: run, max: max}
	g.idle.L = &g.mu
	return g
}

// Do submits req and waits for its answer. When ctx ends first it returns an
// *Abandoned error, which tells whether the call may have been run.
func (g *Group[Req, Res]) Do(ctx context.Context, req Req) (Res, error) {
	c := NewCall[Req, Res](req)
	g.Add(c)
	select {
	case <-c.answered:
		return c.res, c.err
	case <-ctx.Done():
		return c.leave(context.Cause(ctx))
	}
}

// Add puts the calls at the end of the queue.
func (g *Group[Req, Res]) Add(calls ...*Call[Req, Res]) {
	g.mu.Lock()
	defer g.mu.Unlock()
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
// and the Group is idle.
func (g *Group[Req, Res]) next() []*Call[Req, Res] {
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
