package batch

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// ErrFull says that too many calls wait already; the call was not taken.
var ErrFull = errors.New("too many calls wait already")

// A Group runs calls in batches. Make one with New, and set what it exports before
// the first call.
type Group[Req, Res any] struct {
	// AtOnce is how many batches run at once; zero: one.
	AtOnce int
	// Patience is for how long calls wait while nothing ends of what runs. After that
	// it counts no longer, and as many batches may run beside it. Zero: for ever.
	Patience time.Duration
	// Yields is how often at most the processor is yielded before a batch is taken, as
	// long as more calls come of it; zero: once. Whom the last batch has answered often
	// has the next call ready, which else would just miss this one.
	Yields int
	// Alone does a call by itself; for those that Share.
	Alone func(context.Context, Req) (Res, error)

	run      func([]*Call[Req, Res])
	max      int
	maxQueue int
	crew     *Crew

	mu      sync.Mutex
	queue   []*Call[Req, Res]
	era     int // from 1 on; another each time that patience has ended
	running int // turns of this era
	late    int // turns of eras before
	watch   *time.Timer
	idle    sync.Cond // signalled when nothing runs any more
}

// New returns a Group that hands up to max calls at a time to run, which answers
// each of them, sooner or later. Up to maxQueue calls wait for that.
func New[Req, Res any](max, maxQueue int, run func([]*Call[Req, Res])) *Group[Req, Res] {
	g := &Group[Req, Res]{run: run, max: max, maxQueue: maxQueue, era: 1}
	g.idle.L = &g.mu
	return g
}

// On has the Group run on goroutines of the crew. It returns the Group.
func (g *Group[Req, Res]) On(crew *Crew) *Group[Req, Res] {
	g.crew = crew
	return g
}

// Do submits req and waits for its answer. When ctx ends first it returns an
// *Abandoned error, which tells whether the call may have been run; when too many
// calls wait, ErrFull.
func (g *Group[Req, Res]) Do(ctx context.Context, req Req) (Res, error) {
	c := NewCall[Req, Res](req)
	if !g.Offer(c) {
		return c.res, ErrFull
	}
	return c.Wait(ctx)
}

// Add puts the calls at the end of the queue, however long it is: they have been
// taken before.
func (g *Group[Req, Res]) Add(calls ...*Call[Req, Res]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.add(calls...)
}

// Offer puts the calls at the end of the queue, one behind the other, and returns
// true; or takes none of them, if there is not room for all.
func (g *Group[Req, Res]) Offer(calls ...*Call[Req, Res]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue)+len(calls) > g.maxQueue {
		return false
	}
	g.add(calls...)
	return true
}

func (g *Group[Req, Res]) add(calls ...*Call[Req, Res]) {
	if len(calls) == 0 {
		return
	}
	first := len(g.queue) == 0
	g.queue = append(g.queue, calls...)
	if t, free := g.take(); free {
		g.start(t)
	} else if first {
		g.setWatch()
	}
}

// Wait returns once the queue is empty and no batch runs.
func (g *Group[Req, Res]) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.running+g.late > 0 {
		g.idle.Wait()
	}
}

func (g *Group[Req, Res]) work(t turn) {
	for calls := g.next(t); calls != nil; calls = g.next(t) {
		g.run(calls)
	}
}

// next takes the next batch from the queue. When there is none, or the turn is over
// or handed on, it returns nil.
func (g *Group[Req, Res]) next(t turn) []*Call[Req, Res] {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.yield()
	if t.era != g.era || len(g.queue) == 0 {
		g.give(t)
		return nil
	}
	n := min(len(g.queue), g.max)
	batch := g.queue[:n:n]
	g.queue = g.queue[n:]
	if len(g.queue) == 0 {
		g.queue = nil
	}
	g.setWatch()
	if n > 1 || !batch[0].shared {
		return batch
	}
	if !batch[0].handBack(t) {
		g.pass(t)
	}
	return nil
}

// yield lets others put calls into the queue. The caller holds mu.
func (g *Group[Req, Res]) yield() {
	for n := range max(g.Yields, 1) {
		before := len(g.queue)
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
		if n > 0 && len(g.queue) == before {
			return
		}
	}
}
