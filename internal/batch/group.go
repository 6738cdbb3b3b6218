package batch

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// ErrFull is returned when the queue is full; the call was not queued.
var ErrFull = errors.New("too many calls are queued")

// A Group runs calls in batches. Make one with New, and set its exported fields before
// the first call.
type Group[Req, Res any] struct {
	// MaxInFlight is the number of batches and inline calls that may run concurrently;
	// zero means one.
	MaxInFlight int
	// StallTimeout is how long calls wait while no running batch ends. After that, the
	// running batches no longer count towards MaxInFlight. Zero means no timeout.
	StallTimeout time.Duration
	// MaxYields bounds how often the processor is yielded before a batch is formed; zero
	// means once. Yielding stops when it brings no more calls. Callers that the previous
	// batch has answered often make their next call at once, and it joins this batch.
	MaxYields int
	// RunInline runs a single call without a batch; TryInline needs it.
	RunInline func(context.Context, Req) (Res, error)

	run      func([]*Call[Req, Res])
	max      int
	maxQueue int

	mu         sync.Mutex
	queue      []*Call[Req, Res]
	generation int // starts at 1; incremented by detachRunning
	running    int // slots taken in this generation
	detached   int // slots still taken from earlier generations
	stallTimer *time.Timer
	idle       sync.Cond // signaled when no slot is taken
}

// New returns a Group that passes up to max calls at a time to run. The run function must
// eventually answer each of them. Up to maxQueue calls wait in the queue.
func New[Req, Res any](max, maxQueue int, run func([]*Call[Req, Res])) *Group[Req, Res] {
	g := &Group[Req, Res]{run: run, max: max, maxQueue: maxQueue, generation: 1}
	g.idle.L = &g.mu
	return g
}

// Do queues req and waits for its answer. If ctx ends first, it returns a *CanceledError,
// which tells whether the call may have been run. If the queue is full, it returns ErrFull.
func (g *Group[Req, Res]) Do(ctx context.Context, req Req) (Res, error) {
	c := NewCall[Req, Res](req)
	if !g.Offer(c) {
		return c.res, ErrFull
	}
	return c.Wait(ctx)
}

// Offer puts the calls at the end of the queue, in order. If there is not room for all
// of them, it queues none and returns false.
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
	if s, free := g.acquireSlot(); free {
		g.startWorker(s)
	} else if first {
		g.resetStallTimer()
	}
}

// Wait returns when the queue is empty and nothing runs.
func (g *Group[Req, Res]) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.running+g.detached > 0 {
		g.idle.Wait()
	}
}

func (g *Group[Req, Res]) work(s slot) {
	for calls := g.next(s); calls != nil; calls = g.next(s) {
		g.run(calls)
	}
}

// next takes the next batch from the queue. It returns nil if the queue is empty, or if
// the slot was detached or passed to another call.
func (g *Group[Req, Res]) next(s slot) []*Call[Req, Res] {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.yield()
	if s.generation != g.generation || len(g.queue) == 0 {
		g.releaseSlot(s)
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
	if !batch[0].handBack(s) {
		g.passSlot(s)
	}
	return nil
}

// yield lets other goroutines add calls to the queue. The caller holds mu.
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

// A slot is the right to run one batch after another while its generation is the
// Group's. The zero slot is no slot.
type slot struct{ generation int }

// acquireSlot returns a slot if one is free. The caller holds mu.
func (g *Group[Req, Res]) acquireSlot() (slot, bool) {
	if g.running >= max(g.MaxInFlight, 1) {
		return slot{}, false
	}
	g.running++
	return slot{generation: g.generation}, true
}

// startWorker runs batches in the slot.
func (g *Group[Req, Res]) startWorker(s slot) { go g.work(s) }

// releaseSlot frees the slot. The caller holds mu.
func (g *Group[Req, Res]) releaseSlot(s slot) {
	if s.generation == g.generation {
		g.running--
	} else {
		g.detached--
	}
	if g.running+g.detached == 0 {
		g.idle.Broadcast()
	}
}

// TryInline is Do for calls that need no batch. If a slot is free, or if the call is the
// only one in the queue when a slot becomes free, TryInline runs it with RunInline in the
// caller's goroutine, in that slot. It also does so if the runner hands the call back.
// RunInline must observe ctx.
func (g *Group[Req, Res]) TryInline(ctx context.Context, req Req) (Res, error) {
	c, s, err := g.admit(req)
	if err != nil {
		return *new(Res), err
	}
	if c != nil {
		res, err := c.Wait(ctx)
		if !c.isHandedBack() {
			return res, err
		}
		s = c.slot
	}
	if s != (slot{}) {
		defer g.finishInline(s)
	}
	return g.RunInline(ctx, req)
}

// admit returns a slot if one is free and no calls are queued. Otherwise it queues a call
// and returns it.
func (g *Group[Req, Res]) admit(req Req) (*Call[Req, Res], slot, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		if s, free := g.acquireSlot(); free {
			return nil, s, nil
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

// passSlot uses the slot for queued calls, or frees it. The caller holds mu.
func (g *Group[Req, Res]) passSlot(s slot) {
	if s.generation == g.generation && len(g.queue) > 0 {
		g.startWorker(s)
		return
	}
	g.releaseSlot(s)
}

// finishInline passes on the slot of a call that ran inline.
func (g *Group[Req, Res]) finishInline(s slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passSlot(s)
}

// resetStallTimer restarts the StallTimeout for the calls in the queue. The caller holds mu.
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

// onStall is called when no batch has ended for StallTimeout while calls wait.
func (g *Group[Req, Res]) onStall() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 {
		g.detachRunning()
	}
}

// detachRunning starts a generation. The caller holds mu.
func (g *Group[Req, Res]) detachRunning() {
	g.detached += g.running
	g.running, g.generation = 0, g.generation+1
	if len(g.queue) == 0 {
		return
	}
	if s, free := g.acquireSlot(); free {
		g.startWorker(s)
	}
}
