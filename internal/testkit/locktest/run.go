package locktest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-lock/paddock"
)

// cases are tests, by the sentence that each proves.
type cases map[string]func(*fixture)

// Run runs the suite in subtests of t, in parallel, on one service with that many replicas.
func Run(t *testing.T, replicas ...paddock.Service) {
	t.Helper()
	run(t, func(t *testing.T, test func(*fixture)) {
		ctx := t.Context()
		if end, ok := t.Deadline(); ok {
			bounded, cancel := context.WithDeadline(ctx, end.Add(-5*time.Second))
			t.Cleanup(cancel)
			ctx = bounded
		}
		test(newFixture(t, ctx, replicas))
	})
}

// RunInBubbles is Run for a service in memory, which each subtest opens and uses in a bubble of testing/synctest: the
// end of a lease costs no time, and comes in time on the busiest machine. Timers fire in a bubble only while all calls
// wait, so that none is cancelled in the middle of a decision: that is for Run.
func RunInBubbles(t *testing.T, open func() []paddock.Service) {
	t.Helper()
	run(t, func(t *testing.T, test func(*fixture)) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // of the bubble; no case waits so long
			t.Cleanup(cancel)
			test(newFixture(t, ctx, open()))
		})
	})
}

// run runs each case in a subtest of t, in parallel, by calling in with it.
func run(t *testing.T, in func(t *testing.T, test func(*fixture))) {
	t.Helper()
	for topic, tests := range map[string]cases{
		"lease":        leaseCases(),
		"closing":      closingCases(),
		"freeze":       freezeCases(),
		"rule":         ruleCases(),
		"revoke":       revokeCases(),
		"list":         listCases(),
		"events":       eventCases(),
		"follow":       followCases(),
		"several":      severalCases(),
		"history":      historyCases(),
		"watch":        watchCases(),
		"fence":        fenceCases(),
		"suspect":      suspectCases(),
		"bounds":       boundsCases(),
		"context":      contextCases(),
		"batch":        batchCases(),
		"modes":        modeCases(),
		"queue":        queueCases(),
		"waking":       wakingCases(),
		"place":        placeCases(),
		"race":         raceCases(),
		"contention":   contentionCases(),
		"cancellation": cancellationCases(),
		"session":      sessionCases(),
		"set":          setCases(),
		"deadlock":     deadlockCases(),
		"tree":         treeCases(),
	} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			for sentence, test := range tests {
				t.Run(sentence, func(t *testing.T) {
					t.Parallel()
					in(t, test)
				})
			}
		})
	}
}
