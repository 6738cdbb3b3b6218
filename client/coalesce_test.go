package client_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/lock"
)

func (d *harness) acquire(name string) func() error {
	return func() error {
		g, err := d.Acquire(d.t.Context(), lock.Acquire{Name: name, Holder: "h-" + name})
		if err == nil && (g.Name != name || g.Holder != "h-"+name) {
			d.t.Errorf("acquired %s and was told of %s, which %s holds", name, g.Name, g.Holder)
		}
		return err
	}
}

func (d *harness) renew(name string) func() error {
	return func() error {
		g, err := d.Renew(d.t.Context(), lock.Renew{Name: name, LeaseID: leaseID})
		if err == nil && g.Name != name {
			d.t.Errorf("renewed %s and was told of %s", name, g.Name)
		}
		return err
	}
}

func (d *harness) release(name string) func() error {
	return func() error { return d.Release(d.t.Context(), lock.Release{Name: name, LeaseID: leaseID}) }
}

func TestCallsGatheredWhileOthersRunShareARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		busy := d.saturate()
		d.call(d.acquire("a"))
		d.call(d.renew("b"))
		d.call(d.release("a"))
		d.call(d.release("c"))
		d.call(d.acquire("d"))
		d.requests(0)
		busy[0].grant()
		shared := d.request("[ac:a re:b re:a re:c ac:d]")
		if shared.length != int64(shared.size) {
			t.Errorf("announced %d bytes and sent %d", shared.length, shared.size)
		}
		d.call(d.acquire("e"))
		d.requests(0)
		shared.grant()
		d.request("ac:e").grant() // alone, as if there were no batches
		grantAll(busy[1:])
		d.all.Wait()
	})
}

func TestACallIsSentAloneWhenNothingIsInFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		for range 3 {
			d.call(d.acquire("a"))
			d.request("ac:a").grant()
			d.all.Wait()
		}
	})
}

func TestNoCoalesceSendsEachCallAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{NoCoalesce: true})
		for n := range 10 {
			d.call(d.acquire(fmt.Sprint(n)))
		}
		grantAll(d.requests(10))
		d.all.Wait()
	})
}

func TestWaitingAndLargeCallsAreSentAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		busy := d.saturate()
		large := []byte(`{"a":"` + strings.Repeat("a", lock.MaxMetadataSize) + `"}`)
		for want, a := range map[string]lock.Acquire{
			"ac:waits": {Wait: time.Second},
			"ac:keeps": {KeepPlace: true},
			"ac:large": {Metadata: large},
			"ac:long":  {Holder: strings.Repeat("ä", 4*lock.MaxHolderLength)},
		} {
			a.Name = strings.TrimPrefix(want, "ac:")
			d.call(func() error { _, err := d.Acquire(t.Context(), a); return err })
			d.request(want).grant()
		}
		d.call(func() error { _, err := d.Renew(t.Context(), lock.Renew{Name: "large", Metadata: large}); return err })
		d.request("re:large").grant()
		grantAll(busy)
		d.all.Wait()
	})
}

func TestUntilOfASharedCallCountsFromSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		busy := d.saturate()
		start := time.Now()
		for range 2 {
			d.call(func() error {
				g, err := d.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "h"})
				if until := g.Until.Sub(start); until != 29*time.Second+client.MaxLinger/2 {
					t.Errorf("Until is %v after the call", until)
				}
				return err
			})
		}
		<-time.After(client.MaxLinger / 2)
		busy[0].grant()
		shared := d.requests(1)[0]
		<-time.After(time.Second)
		grantAll(append(busy[1:], shared))
		d.all.Wait()
	})
}

func TestAStuckRequestDelaysOthersByMaxLingerOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newHarness(t, client.Options{})
		stuck := d.saturate()
		d.call(d.acquire("a"))
		d.call(d.acquire("b"))
		start := time.Now()
		<-time.After(client.MaxLinger)
		d.request("[ac:a ac:b]").grant()
		if waited := time.Since(start); waited != client.MaxLinger {
			t.Errorf("they waited for %v", waited)
		}
		d.call(d.acquire("c"))
		d.request("ac:c").grant()
		grantAll(stuck)
		d.all.Wait()
	})
}

func TestBatchesStayWithinTheServiceLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls    int
		metadata int
		requests int
	}{
		"many small ones": {2*lock.MaxBatch + 1, 0, 3},
		"few large ones":  {800, lock.MaxMetadataSize, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := newHarness(t, client.Options{})
				busy := d.saturate()
				for range c.calls {
					metadata := []byte(`{"a":"` + strings.Repeat("a", max(c.metadata-8, 0)) + `"}`)
					d.call(func() error {
						_, err := d.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "h", Metadata: metadata})
						return err
					})
				}
				grantAll(busy)
				requests, items := 0, 0
				for waiting := d.pending(); len(waiting) > 0; waiting = d.pending() {
					for _, a := range waiting {
						if len(a.items) > lock.MaxBatch || a.size > 1<<20 {
							t.Errorf("a batch of %d items has %d bytes", len(a.items), a.size)
						}
						requests, items = requests+1, items+len(a.items)
						a.grant()
					}
				}
				if d.all.Wait(); items != c.calls || requests != c.requests {
					t.Errorf("%d calls in %d requests, want %d in %d", items, requests, c.calls, c.requests)
				}
			})
		})
	}
}
