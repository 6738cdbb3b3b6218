package locktest

import (
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// Cases are tests, each under the sentence that it proves.
type cases map[string]func(*scene)

// Run runs the suite in subtests of t, in parallel. Each subtest calls open once,
// with its own T; open may return the same service each time.
func Run(t *testing.T, open func(t *testing.T) lock.Service) {
	t.Helper()
	for topic, tests := range map[string]cases{
		"acquire":  acquiring(),
		"replay":   replaying(),
		"renew":    renewing(),
		"proclaim": proclaiming(),
		"release":  releasing(),
		"expiry":   expiring(),
		"grace":    gracing(),
		"revoke":   revoking(),
		"look":     looking(),
		"list":     listing(),
		"events":   recording(),
		"verify":   verifying(),
		"fence":    fencing(),
		"version":  versioning(),
		"bounds":   bounding(),
		"context":  cancelling(),
		"batch":    batching(),
		"race":     racing(),
		"queue":    queueing(),
		"place":    placing(),
		"crossing": crossing(),
		"shared":   sharing(),
		"permit":   permitting(),
		"crowd":    crowding(),
		"watch":    watching(),
		"follow":   following(),
		"view":     viewing(),
	} {
		t.Run(topic, func(t *testing.T) {
			t.Parallel()
			for sentence, test := range tests {
				t.Run(sentence, func(t *testing.T) {
					t.Parallel()
					test(begin(t, open(t)))
				})
			}
		})
	}
}
