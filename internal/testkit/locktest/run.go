package locktest

import (
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// cases are tests, by the sentence that each proves.
type cases map[string]func(*fixture)

// Run runs the suite in subtests of t, in parallel. Each subtest calls open once,
// with its own T; open may return the same service each time.
func Run(t *testing.T, open func(t *testing.T) lock.Service) {
	t.Helper()
	for topic, tests := range map[string]cases{
		"acquire":      acquireCases(),
		"replay":       replayCases(),
		"renew":        renewCases(),
		"metadata":     metadataCases(),
		"release":      releaseCases(),
		"expiry":       expiryCases(),
		"grace":        graceCases(),
		"revoke":       revokeCases(),
		"get":          getCases(),
		"list":         listCases(),
		"events":       eventCases(),
		"history":      historyCases(),
		"verify":       verifyCases(),
		"stale":        staleCases(),
		"fence":        fenceCases(),
		"version":      versionCases(),
		"bounds":       boundsCases(),
		"context":      contextCases(),
		"batch":        batchCases(),
		"race":         raceCases(),
		"queue":        queueCases(),
		"place":        placeCases(),
		"cancellation": cancellationRaceCases(),
		"shared":       sharedCases(),
		"permit":       permitCases(),
		"contention":   contentionCases(),
		"watch":        watchCases(),
		"follow":       followCases(),
		"queue view":   queueViewCases(),
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
					test(newFixture(t, open(t)))
				})
			}
		})
	}
}
