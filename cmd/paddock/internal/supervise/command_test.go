package supervise

import (
	"errors"
	"testing"
	"time"
)

// A lostLease is lost.
type lostLease struct {
	error
	graceEnds time.Time
}

func (l lostLease) Done() <-chan struct{} { return nil }

func (l lostLease) Err() error { return l.error }

func (l lostLease) Deadline() time.Time { return time.Time{} }

func (l lostLease) GraceEnds() time.Time { return l.graceEnds }

// TestNoCommandIsStartedUnderALostLease: it would have to be stopped at once. It is a loss like one that comes later, after
// which a candidate waits to be elected again.
func TestNoCommandIsStartedUnderALostLease(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	c := &Command{Path: "/no/such/command", Lease: lostLease{error: lost}}
	if result, err := c.Run(); err != nil || !errors.Is(result.Lost, lost) || !result.Idle || result.String() != "before its start" {
		t.Errorf("%v, %v", result, err)
	}
}
