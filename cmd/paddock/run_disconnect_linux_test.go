package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCommandWithoutConnectionIsGoneBeforeItsLeaseEnds is about a connection that is
// dropped, not refused.
func TestCommandWithoutConnectionIsGoneBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	for i := range 5 {
		t.Run(fmt.Sprintf("try %d", i+1), func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			line := d.useProxy()
			p := d.startRun("--ttl", ttl.String(), nightly, "--", "sh", "-c", processTreeScript)
			pids := p.pids(t)
			time.AfterFunc(rand.N(ttl/3), line.Stall)
			gone := whenGone(t, pids)
			g := d.acquireNext()
			for _, pid := range pids {
				if at := <-gone; !at.Before(g.AcquiredAt) {
					t.Errorf("one of %d was there at %v, and the lock somebody else's since %v", pid, at, g.AcquiredAt)
				} else {
					t.Logf("gone %v before the lock was somebody else's", g.AcquiredAt.Sub(at))
				}
			}
			p.expectExit(t, exitLeaseLost, "is at risk", "was stopped (SIGKILL)", "its renewals failed")
		})
	}
}
