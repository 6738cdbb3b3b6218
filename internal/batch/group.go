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
	// MaxInFlight is how many batches run at once; zero: one.
	MaxInFlight int
	// StallTimeout is for how long calls wait while nothing ends of what runs. After that
	// it counts no longer, and as many batches may run beside it. Zero: for ever.
	StallTimeout time.Duration
	// MaxYields is how often at most the processor is yielded before a batch is taken, as
	// long as more calls come of it; zero: once. Whom the last batch has answered often
	// has the next call ready, which else would just miss this one.
	MaxYields int
	// RunInline does a call by itself; for those that Share.
	RunInline func(context.Context, Req) (Res, error)

	run      func([]*Call[Req, Res])
	max      int
	maxQueue int
	pool     *WorkerPool

	mu         sync.Mutex
	queue      []*Call[Req, Res]
	generation int // from 1 on; another each time that patience has ended
	running    int // turns of this era
	detached   int // turns of eras before
	stallTimer *time.Timer
	idle       sync.Cond // signalled when nothing runs any more
}

// New returns a Group that hands up to max calls at a time to run, which answers
// each of them, sooner or later. Up to maxQueue calls wait for that.
func New[Req, Res any](max, maxQueue int, run func([]*Call[Req, Res])) *Group[Req, Res] {
	g := &Group[Req, Res]{run: run, max: max, maxQueue: maxQueue, generation: 1}
	g.idle.L = &g.mu
	return g
}

// UsePool has the Group run on goroutines of the crew. It returns the Group.
func (g *Group[Req, Res]) UsePool(crew *WorkerPool) *Group[Req, Res] {
	g.pool = crew
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
	if t, free := g.acquireSlot(); free {
		g.startWorker(t)
	} else if first {
		g.resetStallTimer()
	}
}

// Wait returns once the queue is empty and no batch runs.
func (g *Group[Req, Res]) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.running+g.detached > 0 {
		g.idle.Wait()
	}
}

func (g *Group[Req, Res]) work(t slot) {
	for calls := g.next(t); calls != nil; calls = g.next(t) {
		g.run(calls)
	}
}

// next takes the next batch from the queue. When there is none, or the turn is over
// or handed on, it returns nil.
func (g *Group[Req, Res]) next(t slot) []*Call[Req, Res] {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.yield()
	if t.generation != g.generation || len(g.queue) == 0 {
		g.releaseSlot(t)
		return nil
	}
	n := min(len(g.queue), g.max)
	batch := g.queue[:n:n]
	g.queue = g.queue[n:]
	if len(g.queue) == 0 {
		g.queue = nil
	}
	g.resetStallTimer()
	if n > 1 || !batch[0].canInline {
		return batch
	}
	if !batch[0].handBack(t) {
		g.passSlot(t)
	}
	return nil
}

// yield lets others put calls into the queue. The caller holds mu.
func (g *Group[Req, Res]) yield() {
	for n := range max(g.MaxYields, 1) {
		before := len(g.queue)
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
		if n > 0 && len(g.queue) == before {
			return
		}
	}
}

// A slot is leave to run one batch after another, as long as its era is the Group's.
// The zero turn is none.
type slot struct{ generation int }

// acquireSlot returns a turn if one is free. The caller holds mu.
func (g *Group[Req, Res]) acquireSlot() (slot, bool) {
	if g.running >= max(g.MaxInFlight, 1) {
		return slot{}, false
	}
	g.running++
	return slot{generation: g.generation}, true
}

// startWorker has batches run with the turn.
func (g *Group[Req, Res]) startWorker(t slot) { g.pool.Go(func() { g.work(t) }) }

// releaseSlot gives a turn back. The caller holds mu.
func (g *Group[Req, Res]) releaseSlot(t slot) {
	if t.generation == g.generation {
		g.running--
	} else {
		g.detached--
	}
	if g.running+g.detached == 0 {
		g.idle.Broadcast()
	}
}

// TryInline is Do for calls that can be done alone, too. A call that finds a turn free,
// or nobody to share a batch with once its turn comes, is done by its caller with
// Alone, which takes that turn as a batch does; ctx is Alone's to heed. So is one
// that run hands back.
func (g *Group[Req, Res]) TryInline(ctx context.Context, req Req) (Res, error) {
	c, t, err := g.admit(req)
	if err != nil {
		return *new(Res), err
	}
	if c != nil {
		res, err := c.Wait(ctx)
		if !c.isHandedBack() {
			return res, err
		}
		t = c.slot
	}
	if t != (slot{}) {
		defer g.finishInline(t)
	}
	return g.RunInline(ctx, req)
}

// admit returns a turn for a call that need not wait for one, else the call in the
// queue.
func (g *Group[Req, Res]) admit(req Req) (*Call[Req, Res], slot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		if t, free := g.acquireSlot(); free {
			return nil, t, nil
		}
	}
	if len(g.queue) >= g.maxQueue {
		return nil, slot{}, ErrFull
	}
	c := NewCall[Req, Res](req)
	c.canInline = true
	g.add(c)
	return c, slot{}, nil
}

// passSlot hands a turn to those who wait for one, or gives it back. The caller holds mu.
func (g *Group[Req, Res]) passSlot(t slot) {
	if t.generation == g.generation && len(g.queue) > 0 {
		g.startWorker(t)
		return
	}
	g.releaseSlot(t)
}

// finishInline is what a call done alone ends its turn with.
func (g *Group[Req, Res]) finishInline(t slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passSlot(t)
}

// resetStallTimer starts to count how long those wait that wait now. The caller holds mu.
func (g *Group[Req, Res]) resetStallTimer() {
	if g.StallTimeout <= 0 {
		return
	}
	if g.stallTimer == nil {
		g.stallTimer = time.AfterFunc(g.StallTimeout, g.onStall)
	}
	if len(g.queue) > 0 {
		g.stallTimer.Reset(g.StallTimeout)
	} else {
		g.stallTimer.Stop()
	}
}

// onStall runs what waits beside all that runs: nothing of that has ended for too long.
func (g *Group[Req, Res]) onStall() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		g.detachRunning()
	}
}

// DetachRunning has batches that run now count no longer: what waits, or comes, runs beside
// them. It is for those who run one and see that it may take for ever.
func (g *Group[Req, Res]) DetachRunning() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.detachRunning()
}

// detachRunning begins an era. The caller holds mu.
func (g *Group[Req, Res]) detachRunning() {
	g.detached += g.running
	g.running, g.generation = 0, g.generation+1
	if len(g.queue) == 0 {
		return
	}
	if t, free := g.acquireSlot(); free {
		g.startWorker(t)
	}
}
