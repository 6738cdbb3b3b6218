//go:build unix

package supervise

import (
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestTheGraceEndsAtAnInstant: what the service reported as left of it may be old, if this process was stopped meanwhile.
func TestTheGraceEndsAtAnInstant(t *testing.T) {
	t.Parallel()
	lost := &lock.Error{Code: lock.ErrLeaseLost, Ended: lock.Revoked, GraceLeft: time.Hour}
	for what, c := range map[string]struct {
		left, slack time.Duration
		kills       bool
	}{
		"it has time":   {time.Hour, time.Minute, false},
		"its slack":     {30 * time.Second, time.Minute, true},
		"it has passed": {-time.Second, 0, true},
		"no grace":      {-1 << 63, time.Minute, true},
	} {
		s := &supervision{Command: &Command{
			KillAfter: time.Second, Slack: c.slack, Lease: lostLease{lost, time.Now().Add(c.left)},
		}}
		s.result.Lost = lost
		if left := s.timeToEnd(); (left <= 0) != c.kills || left > c.left {
			t.Errorf("%s: the command may go on for %v", what, left)
		}
	}
}
