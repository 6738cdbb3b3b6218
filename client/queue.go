package client

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/batch"
	"github.com/paddock-lock/paddock/lock"
)

const (
	// maxInFlight is the number of requests in flight from which on calls gather.
	maxInFlight = 2
	// maxYields bounds how often the processor is yielded before a batch is formed, so that callers that were just
	// answered can add their next calls. Yielding stops when it brings no more calls.
	maxYields = 8
	// maxLinger is how long calls gather while no request is answered. Then they are sent regardless, because the
	// requests in flight may be on a dead connection.
	maxLinger = 100 * time.Millisecond
)

// queuedCall is a call in a callQueue, or in a batch out of it.
type queuedCall = batch.Call[*pendingCall, reply]

// A reply is what comes back for a call that was given to a callQueue: its grant, or its turn to be sent alone.
type reply struct {
	grant lock.Grant
	alone bool // the caller sends the call in a request of its own, then calls release
	slot  slot // for that request; zero if it needs none
}

// A slot is the right to have a request in flight. It lapses at the queue's next generation. The zero slot is no slot.
type slot int

// A callQueue sends each call alone while fewer than maxInFlight requests are in flight. Further calls gather, in
// order, and form the next batch. It adds no delay, and batches grow with the load. It uses goroutines only for
// batches.
type callQueue struct {
	send func([]*queuedCall) // answers each call; runs in the goroutine of the batch

	mu         sync.Mutex
	calls      []*queuedCall
	generation slot // starts at 1; the slots of earlier ones have lapsed
	inFlight   int  // slots taken in this generation
	timer      *time.Timer
}

func newCallQueue(send func([]*queuedCall)) *callQueue { return &callQueue{send: send, generation: 1} }

// do returns the reply to a call, which may be that the caller sends it alone. If ctx ends first, it returns a
// *batch.CanceledError.
func (q *callQueue) do(ctx context.Context, p *pendingCall) (reply, error) {
	return q.add(p).Wait(ctx)
}

// add adds a call to the queue. If no others gather and a slot is free, it gives the slot to the call instead.
func (q *callQueue) add(p *pendingCall) *queuedCall {
	c := batch.NewCall[*pendingCall, reply](p)
	q.mu.Lock()
	defer q.mu.Unlock()
	free := q.inFlight < maxInFlight
	if free {
		q.inFlight++
	}
	if free && len(q.calls) == 0 {
		c.Answer(reply{alone: true, slot: q.generation}, nil)
		return c
	}
	q.calls = append(q.calls, c)
	if free {
		go q.sendBatches(q.generation)
	} else if len(q.calls) == 1 {
		q.resetTimer()
	}
	return c
}

// release frees the slot, or uses it for the calls in the queue.
func (q *callQueue) release(s slot) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s != q.generation {
		return
	}
	if len(q.calls) > 0 {
		go q.sendBatches(s)
	} else {
		q.inFlight--
	}
}

// sendBatches sends one batch after another in the slot.
func (q *callQueue) sendBatches(s slot) {
	for calls := q.next(s); calls != nil; calls = q.next(s) {
		q.send(calls)
	}
}

// next takes the next batch out of the queue. It returns nil if the slot has lapsed, and if next has freed it or given
// it to a call that was alone in the queue.
func (q *callQueue) next(s slot) []*queuedCall {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.yield(); s == q.generation; q.yield() {
		n := min(len(q.calls), paddock.MaxBatch)
		if n == 0 {
			q.inFlight--
			return nil
		}
		calls := q.calls[:n:n]
		if q.calls = q.calls[n:]; len(q.calls) == 0 {
			q.calls = nil
		}
		q.resetTimer()
		if n > 1 {
			return calls
		}
		if calls[0].Answer(reply{alone: true, slot: s}, nil) {
			return nil
		}
	}
	return nil
}

// yield lets other goroutines add calls to the queue. The caller holds mu.
func (q *callQueue) yield() {
	for n := range maxYields {
		before := len(q.calls)
		q.mu.Unlock()
		runtime.Gosched()
		q.mu.Lock()
		if n > 0 && len(q.calls) == before {
			return
		}
	}
}

// resetTimer restarts maxLinger for the calls in the queue. The caller holds mu.
func (q *callQueue) resetTimer() {
	switch {
	case q.timer == nil:
		q.timer = time.AfterFunc(maxLinger, q.onLinger)
	case len(q.calls) > 0:
		q.timer.Reset(maxLinger)
	default:
		q.timer.Stop()
	}
}

// onLinger starts a generation, since calls gathered for maxLinger while no batch was formed.
func (q *callQueue) onLinger() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) == 0 {
		return
	}
	q.generation++
	q.inFlight = 1
	go q.sendBatches(q.generation)
}
