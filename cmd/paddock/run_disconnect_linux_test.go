package main

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestCommandWithoutConnectionIsGoneBeforeItsLeaseEnds drops packets instead of refusing connections. Its tries only
// wait, so they count as one of the tests that run at once.
func TestCommandWithoutConnectionIsGoneBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	const ttl = 8 * time.Second // long enough that a busy machine does not pause the command past its lease
	var tries sync.WaitGroup
	for i := range 5 {
		tries.Go(func() {
			t.Run(fmt.Sprintf("try %d", i+1), func(t *testing.T) { tryWithoutConnection(t, ttl) })
		})
	}
	tries.Wait()
}

func tryWithoutConnection(t *testing.T, ttl time.Duration) {
	d := newHarness(t)
	line := d.useProxy()
	p := d.startRun("--ttl", ttl.String(), nightly, "--", "sh", "-c", processTreeScript)
	pids := p.pids(t)
	time.AfterFunc(rand.N(ttl/3), line.Stall)
	gone := whenGone(t, pids)
	g := d.acquireNext()
	for _, pid := range pids {
		if at := <-gone; !at.Before(g.AcquiredAt) {
			t.Errorf("a process of %d was alive at %v, and another client has had the lock since %v", pid, at, g.AcquiredAt)
		} else {
			t.Logf("last seen %v before another client had the lock", g.AcquiredAt.Sub(at))
		}
	}
	p.expectExit(t, exitLeaseLost, "is at risk", "was stopped (SIGKILL)", "its renewals failed")
}
