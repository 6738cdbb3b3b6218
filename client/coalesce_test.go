package client_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

func (h *harness) acquire(name string) func() error {
	return func() error {
		g, err := h.Acquire(h.t.Context(), lock.Acquire{Locks: lock.One(name), Holder: "h-" + name})
		if err == nil && (g.Name != name || g.Holder != "h-"+name) {
			h.t.Errorf("acquired %s and got a grant of %s to %s", name, g.Name, g.Holder)
		}
		return err
	}
}

func (h *harness) renew(name string) func() error {
	return func() error {
		g, err := h.Renew(h.t.Context(), lock.Renew{Locks: []string{name}, LeaseID: leaseID})
		if err == nil && g.Name != name {
			h.t.Errorf("renewed %s and got a grant of %s", name, g.Name)
		}
		return err
	}
}

func (h *harness) release(name string) func() error {
	return func() error { return h.Release(h.t.Context(), lock.Release{Locks: []string{name}, LeaseID: leaseID}) }
}

func TestCallsGatheredWhileOthersRunShareARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		busy := h.saturate()
		h.call(h.acquire("a"))
		h.call(h.renew("b"))
		h.call(h.release("a"))
		h.call(h.release("c"))
		h.call(h.acquire("d"))
		h.requests(0)
		busy[0].grant()
		shared := h.request("[ac:a re:b re:a re:c ac:d]")
		if shared.length != int64(shared.size) {
			t.Errorf("Content-Length is %d, but %d bytes were sent", shared.length, shared.size)
		}
		h.call(h.acquire("e"))
		h.requests(0)
		shared.grant()
		h.request("ac:e").grant() // a single gathered call is sent alone
		grantAll(busy[1:])
		h.all.Wait()
	})
}

func TestACallIsSentAloneWhenNothingIsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		for range 3 {
			h.call(h.acquire("a"))
			h.request("ac:a").grant()
			h.all.Wait()
		}
	})
}

func TestNoCoalesceSendsEachCallAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{NoCoalesce: true})
		for n := range 10 {
			h.call(h.acquire(fmt.Sprint(n)))
		}
		grantAll(h.requests(10))
		h.all.Wait()
	})
}

func TestWaitingAndLargeCallsAreSentAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		busy := h.saturate()
		large := []byte(`{"a":"` + strings.Repeat("a", lock.MaxMetadataSize) + `"}`)
		for want, a := range map[string]lock.Acquire{
			"ac:waits": {Wait: time.Second},
			"ac:keeps": {KeepPlace: true},
			"ac:large": {Metadata: large},
			"ac:long":  {Holder: strings.Repeat("ä", 4*lock.MaxHolderLength)},
		} {
			a.Locks = lock.One(strings.TrimPrefix(want, "ac:"))
			h.call(func() error { _, err := h.Acquire(t.Context(), a); return err })
			h.request(want).grant()
		}
		h.call(func() error {
			_, err := h.Renew(t.Context(), lock.Renew{Locks: []string{"large"}, Metadata: large})
			return err
		})
		h.request("re:large").grant()
		grantAll(busy)
		h.all.Wait()
	})
}

func TestUntilOfASharedCallCountsFromSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		busy := h.saturate()
		start := time.Now()
		for range 2 {
			h.call(func() error {
				g, err := h.Acquire(t.Context(), lock.Acquire{Locks: lock.One("a"), Holder: "h"})
				if until := g.Until.Sub(start); until != 29*time.Second+client.MaxLinger/2 {
					t.Errorf("Until is %v after the call", until)
				}
				return err
			})
		}
		<-time.After(client.MaxLinger / 2)
		busy[0].grant()
		shared := h.requests(1)[0]
		<-time.After(time.Second)
		grantAll(append(busy[1:], shared))
		h.all.Wait()
	})
}

// TestAStuckRequestDelaysOthersByMaxLingerOnly, be it of one call or a batch. When the stuck requests are answered at
// last, there are as many in flight as before.
func TestAStuckRequestDelaysOthersByMaxLingerOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, client.Options{})
		stuck := h.saturate()
		h.call(h.acquire("a"))
		h.call(h.acquire("b"))
		start := time.Now()
		<-time.After(client.MaxLinger)
		batch := h.request("[ac:a ac:b]")
		if waited := time.Since(start); waited != client.MaxLinger {
			t.Errorf("the calls waited for %v", waited)
		}
		h.call(h.acquire("c"))
		stuck = append(stuck, batch, h.request("ac:c"))
		h.call(h.acquire("d"))
		h.call(h.acquire("e"))
		h.requests(0)
		<-time.After(client.MaxLinger)
		stuck = append(stuck, h.request("[ac:d ac:e]"))
		h.call(h.acquire("f"))
		stuck = append(stuck, h.request("ac:f"))
		grantAll(stuck[:len(stuck)-2])
		synctest.Wait()
		h.call(h.acquire("g"))
		h.requests(0) // two are still in flight
		grantAll(stuck[len(stuck)-2:])
		h.request("ac:g").grant()
		h.all.Wait()
		busy := h.saturate()
		h.call(h.acquire("h"))
		h.requests(0)
		busy[0].grant()
		grantAll(append(h.requests(1), busy[1:]...))
		h.all.Wait()
	})
}

func TestBatchesStayWithinTheServiceLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls    int
		metadata int
		requests int
	}{
		"many small ones": {2*paddock.MaxBatch + 1, 0, 3},
		"few large ones":  {800, lock.MaxMetadataSize, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t, client.Options{})
				busy := h.saturate()
				for range c.calls {
					metadata := []byte(`{"a":"` + strings.Repeat("a", max(c.metadata-8, 0)) + `"}`)
					h.call(func() error {
						_, err := h.Acquire(t.Context(), lock.Acquire{Locks: lock.One("a"), Holder: "h", Metadata: metadata})
						return err
					})
				}
				grantAll(busy)
				requests, items := 0, 0
				for waiting := h.pending(); len(waiting) > 0; waiting = h.pending() {
					for _, a := range waiting {
						if len(a.items) > paddock.MaxBatch || a.size > 1<<20 {
							t.Errorf("a batch of %d items has %d bytes", len(a.items), a.size)
						}
						requests, items = requests+1, items+len(a.items)
						a.grant()
					}
				}
				if h.all.Wait(); items != c.calls || requests != c.requests {
					t.Errorf("%d calls in %d requests, want %d in %d", items, requests, c.calls, c.requests)
				}
			})
		})
	}
}
