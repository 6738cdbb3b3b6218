package client

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// A queueHarness is a callQueue that records the calls sent alone and the batches, by the names of their locks. It
// runs in a synctest bubble.
type queueHarness struct {
	t         *testing.T
	queue     *callQueue
	gate      chan struct{} // each call sent alone waits for one value
	batchGate chan struct{} // each batch waits for one value, if not nil

	mu      sync.Mutex
	alone   []string
	batches []string // names separated by spaces
	all     sync.WaitGroup
}

func newQueueHarness(t *testing.T) *queueHarness {
	h := &queueHarness{t: t, gate: make(chan struct{})}
	h.queue = newCallQueue(h.sendBatch)
	return h
}

func (h *queueHarness) record(to *[]string, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*to = append(*to, text)
}

func (h *queueHarness) sendBatch(calls []*queuedCall) {
	names := make([]string, len(calls))
	for i, c := range calls {
		names[i] = c.Req.item.Names()[0]
	}
	h.record(&h.batches, strings.Join(names, " "))
	if h.batchGate != nil {
		<-h.batchGate
	}
	for i, c := range calls {
		c.Begin()
		c.Answer(reply{grant: lock.Grant{Lease: lock.Lease{Holder: names[i]}}}, nil)
	}
}

// do gives a call to the queue, and sends it alone if that is the reply.
func (h *queueHarness) do(name string) error {
	got, err := h.queue.do(h.t.Context(), &pendingCall{item: lock.Release{Name: name}})
	if got.alone {
		defer h.queue.release(got.slot)
		h.record(&h.alone, name)
		<-h.gate
	} else if err == nil && got.grant.Holder != name {
		h.t.Errorf("the call on %s got the grant of %s", name, got.grant.Holder)
	}
	return err
}

// submit starts a call on each name, which must succeed, each when all goroutines are blocked.
func (h *queueHarness) submit(names ...string) {
	h.t.Helper()
	for _, name := range names {
		h.all.Go(func() {
			if err := h.do(name); err != nil {
				h.t.Errorf("the call on %s failed: %v", name, err)
			}
		})
		synctest.Wait()
	}
}

// someNames returns n names.
func someNames(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(i)
	}
	return all
}

// end ends n of the calls that are being sent alone, the earliest first, each when all goroutines are blocked.
func (h *queueHarness) end(n int) {
	for range n {
		h.gate <- struct{}{}
		synctest.Wait()
	}
}

// expect waits until all goroutines are blocked. It checks which calls were sent alone so far, which batches were
// sent, and how many slots are taken.
func (h *queueHarness) expect(alone, batches []string, inFlight int) {
	h.t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue.mu.Lock()
	defer h.queue.mu.Unlock()
	if !slices.Equal(h.alone, alone) || !slices.Equal(h.batches, batches) {
		h.t.Errorf("alone %q, batches %q, want %q and %q", h.alone, h.batches, alone, batches)
	}
	if h.queue.inFlight != inFlight {
		h.t.Errorf("%d slots are taken, want %d", h.queue.inFlight, inFlight)
	}
}

func TestSeveralBatchesAreInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newQueueHarness(t)
		h.batchGate = make(chan struct{})
		h.submit("a", "b", "c", "d")
		h.end(1)
		h.submit("e", "f")
		h.end(1)
		h.submit("g", "h")
		h.expect([]string{"a", "b"}, []string{"c d", "e f"}, 2)
		h.batchGate <- struct{}{}
		h.expect([]string{"a", "b"}, []string{"c d", "e f", "g h"}, 2)
		for range 2 {
			h.batchGate <- struct{}{}
		}
		h.all.Wait()
		h.expect([]string{"a", "b"}, []string{"c d", "e f", "g h"}, 0)
	})
}

func TestAStalledRequestDoesNotBlockTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newQueueHarness(t)
		h.batchGate = make(chan struct{})
		h.submit("a", "b", "c", "d") // a and b stall
		<-time.After(maxLinger)
		h.expect([]string{"a", "b"}, []string{"c d"}, 1)
		h.submit("e") // one slot is left
		h.expect([]string{"a", "b", "e"}, []string{"c d"}, 2)
		h.submit("f", "g", "h")
		h.batchGate <- struct{}{} // ends the batch of c and d, which holds a slot
		h.expect([]string{"a", "b", "e"}, []string{"c d", "f g h"}, 2)
		h.end(1) // a, whose slot has lapsed
		h.expect([]string{"a", "b", "e"}, []string{"c d", "f g h"}, 2)
		h.submit("i")
		h.end(1) // b, whose slot has lapsed, too
		h.expect([]string{"a", "b", "e"}, []string{"c d", "f g h"}, 2)
		h.end(1) // e, which holds a slot
		h.expect([]string{"a", "b", "e", "i"}, []string{"c d", "f g h"}, 2)
		h.end(1)
		h.batchGate <- struct{}{}
		h.all.Wait()
		h.expect([]string{"a", "b", "e", "i"}, []string{"c d", "f g h"}, 0)
	})
}

// TestAStalledBatchEndsWithItsSlot: what has gathered since then is left to the slots of the next generation.
func TestAStalledBatchEndsWithItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newQueueHarness(t)
		h.batchGate = make(chan struct{})
		h.submit("a", "b", "c", "d")
		h.end(2)
		h.submit("e", "f", "g")
		<-time.After(maxLinger)
		h.expect([]string{"a", "b", "e"}, []string{"c d", "f g"}, 1)
		h.submit("h", "i")
		h.expect([]string{"a", "b", "e", "h"}, []string{"c d", "f g"}, 2)
		h.batchGate <- struct{}{} // ends the batch of c and d, whose slot has lapsed
		h.expect([]string{"a", "b", "e", "h"}, []string{"c d", "f g"}, 2)
		h.end(2) // e, whose slot has lapsed, and h
		h.expect([]string{"a", "b", "e", "h", "i"}, []string{"c d", "f g"}, 2)
		h.end(1)
		h.batchGate <- struct{}{}
		h.all.Wait()
		h.expect([]string{"a", "b", "e", "h", "i"}, []string{"c d", "f g"}, 0)
	})
}

func TestCallsBeyondAFullBatchAreSentWhenRequestsStall(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]struct {
		sent           func(*queueHarness)
		alone, batches []string
		inFlight       int
	}{
		"with the next call":         {func(h *queueHarness) { h.submit("z") }, nil, []string{"y z"}, 2},
		"when the batch stalls, too": {func(*queueHarness) { <-time.After(maxLinger) }, []string{"y"}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newQueueHarness(t)
				h.batchGate = make(chan struct{})
				full := someNames(lock.MaxBatch)
				h.submit("a", "b")
				h.submit(full...)
				h.submit("y")
				<-time.After(maxLinger)
				alone, batches := []string{"a", "b"}, []string{strings.Join(full, " ")}
				h.expect(alone, batches, 1)
				next.sent(h)
				alone, batches = append(alone, next.alone...), append(batches, next.batches...)
				h.expect(alone, batches, next.inFlight)
				h.end(len(alone))
				for range batches {
					h.batchGate <- struct{}{}
				}
				h.all.Wait()
				h.expect(alone, batches, 0)
			})
		})
	}
}
