package verify_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/verify"
)

// TestAClosedLockIsNotGranted before it opens, unless an operator opens it.
func TestAClosedLockIsNotGranted(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		text  string
		until int // the release of the second event closes the lock for so many seconds
		want  string
	}{
		"granted before it opens": {"granted exclusive 0 a 1 0\nreleased exclusive 0 a 1 0\ngranted exclusive 0 b 2 0", 5, "the lock is closed until"},
		"granted when it opens":   {"granted exclusive 0 a 1 0\nreleased exclusive 0 a 1 0\ngranted exclusive 0 b 2 0", 1, ""},
		"granted after it was opened": {
			"granted exclusive 0 a 1 0\nreleased exclusive 0 a 1 0\nopened exclusive 0 a 1 0\ngranted exclusive 0 b 2 0", 5, "",
		},
		"a waiter waits while it is closed": {
			"granted exclusive 0 a 1 0\nreleased exclusive 0 a 1 0\nqueued exclusive 0 b 0 3\nqueued exclusive 0 c 0 4", 5, "",
		},
		"a waiter waits while it is frozen": {
			"frozen exclusive 0 - 0 0\nqueued exclusive 0 b 0 2\nqueued exclusive 0 c 0 3\nthawed exclusive 0 - 0 0\ngranted exclusive 0 b 5 2", 0, "",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			events := parseEvents(t, c.text)
			for i := range events {
				if events[i].Holder == "-" {
					events[i].Holder = ""
				}
				if events[i].Kind == lock.Released {
					events[i].Until = events[i].At.Add(time.Duration(c.until) * time.Second)
				}
			}
			err := verify.Rules{AllowWaiters: true}.Check(events)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check = %v, want %q", err, c.want)
			}
		})
	}
}
