package supervise

import (
	"errors"
	"testing"
	"time"
)

// A lostLease was lost before its command starts.
type lostLease struct{ error }

func (l lostLease) Done() <-chan struct{} { return nil }

func (l lostLease) Err() error { return l.error }

func (l lostLease) Deadline() time.Time { return time.Time{} }

// TestNoCommandIsStartedUnderALostLease: it would have to be stopped at once.
func TestNoCommandIsStartedUnderALostLease(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	c := &Command{Path: "/no/such/command", Lease: lostLease{lost}}
	if result, err := c.Run(); !errors.Is(err, lost) {
		t.Errorf("%v, %v", result, err)
	}
}
