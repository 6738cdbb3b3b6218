package epoch

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/database"
)

func TestChangedDatabaseIsDetected(t *testing.T) {
	t.Parallel()
	seen := Known{number: 3, flushed: 1000}
	granted := Known{number: 3, flushed: 1000, batch: 160}
	shown := Known{number: 3, flushed: 1000, batch: 150, event: 5*4096 + 17}
	for name, c := range map[string]struct {
		epoch Epoch
		known Known
		want  error
	}{
		"the same as before":                  {Epoch{Number: 3, Here: true, Flushed: 1000}, seen, nil},
		"its log has grown":                   {Epoch{Number: 3, Here: true, Flushed: 1001}, seen, nil},
		"this process has seen none yet":      {Epoch{Number: 3, Here: true, Flushed: 5}, Known{}, nil},
		"another replica has begun an epoch":  {Epoch{Number: 4, Here: true, Flushed: 5}, seen, nil},
		"a standby was promoted":              {Epoch{Number: 3, Flushed: 2000}, seen, ErrChanged},
		"a restore to before an epoch":        {Epoch{Number: 2, Here: true, Flushed: 5000}, seen, errRestored},
		"a restore":                           {Epoch{Number: 3, Here: true, Flushed: 999}, seen, errRestored},
		"a restore, and others wrote since":   {Epoch{Number: 3, Here: true, Flushed: 9000, LastBatch: 100}, granted, errEventsLost},
		"a restore that lost no batch":        {Epoch{Number: 3, Here: true, Flushed: 9000, LastBatch: 160, LastEvent: 4*4096 + 4095}, shown, errEventsLost},
		"its events have gone on":             {Epoch{Number: 3, Here: true, Flushed: 9000, LastBatch: 160, LastEvent: 6*4096 + 4095}, shown, nil},
		"the event is in its last batch":      {Epoch{Number: 3, Here: true, Flushed: 9000, LastBatch: 160, LastEvent: 5*4096 + 4095}, shown, nil},
		"all events were pruned":              {Epoch{Number: 3, Here: true, Flushed: 9000, LastBatch: 160, LastEvent: 5*4096 + 9}, shown, nil},
		"an epoch without the last events":    {Epoch{Number: 4, Here: true, LastBatch: 160, LastEvent: 0}, shown, nil},
		"its batches have gone on":            {Epoch{Number: 3, Here: true, Flushed: 1001, LastBatch: 161}, granted, nil},
		"its last batch was written":          {Epoch{Number: 3, Here: true, Flushed: 1001, LastBatch: 160}, granted, nil},
		"the next epoch has lost batches":     {Epoch{Number: 4, Here: true, Flushed: 1, LastBatch: 159}, granted, errEventsLost},
		"it has lost the longest lease":       {Epoch{Number: 4, Here: true}, Known{number: 3, longest: 1}, ErrLengthLost},
		"a quorum, and there are standbys":    {Epoch{Number: 3, Here: true, Flushed: 1000, Quorum: true, Replicates: true}, seen, nil},
		"a quorum, and there are no standbys": {Epoch{Number: 3, Here: true, Flushed: 1000, Quorum: true}, seen, database.ErrNoStandby},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := c.epoch.Check(c.known)
			if !errors.Is(err, c.want) {
				t.Errorf("Check = %v, want %v", err, c.want)
			}
			if errors.Is(c.want, ErrChanged) != errors.Is(err, ErrChanged) {
				t.Errorf("%v is no ErrChanged", err)
			}
		})
	}
}

// TestTheReasonOfAnEpochIsNotAboutOneReplica: it is stored once, and all replicas show it, after a colon.
func TestTheReasonOfAnEpochIsNotAboutOneReplica(t *testing.T) {
	t.Parallel()
	for _, err := range []error{errRestored, errEventsLost} {
		if text := err.Error(); !strings.Contains(text, "that a replica has seen") || strings.Count(text, ":") != 1 {
			t.Errorf("the reason is %q", text)
		}
	}
}

func TestKnownOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	m := New(nil)
	m.Observe(Epoch{Number: 1, Flushed: 100, Longest: time.Minute, LastEvent: 11 * 4096}, 12*4096)
	m.Observe(Epoch{Number: 1, Flushed: 90, Longest: time.Second, LastEvent: 9 * 4096}, 10*4096) // late
	if got, want := m.Known(), (Known{number: 1, flushed: 100, longest: time.Minute, batch: 12, event: 12 * 4096}); got != want {
		t.Errorf("known = %+v, want %+v", got, want)
	}
	m.Observe(Epoch{Number: 2, Flushed: 10, LastEvent: 8 * 4096}, 0)
	m.Observe(Epoch{Number: 1, Flushed: 200, LastEvent: 20 * 4096}, 21*4096) // of the old server
	want := Known{number: 2, flushed: 10, longest: time.Minute, batch: 21, event: 8 * 4096}
	if got := m.Known(); got != want {
		t.Errorf("known = %+v, want %+v", got, want)
	}
}

func TestLongerLeaseMustBeRecordedFirst(t *testing.T) {
	t.Parallel()
	for name, covers := range map[string]func(time.Duration) error{
		"an epoch":      Epoch{Longest: time.Minute}.CheckLength,
		"what is known": Known{longest: time.Minute}.CheckLength,
	} {
		if err := covers(time.Minute); err != nil {
			t.Errorf("%s: as long as before: %v", name, err)
		}
		longer := new(LongerError)
		if err := covers(time.Minute + 1); !errors.As(err, &longer) || longer.Length != time.Minute+1 {
			t.Errorf("%s: longer than before: %v", name, err)
		}
	}
	d := lock.Decision{Leases: []lock.Lease{{TTL: 2 * time.Second, Grace: time.Second}}}
	if got := LongestOf(d); got != 3*time.Second {
		t.Errorf("LongestOf = %v, want TTL and grace", got)
	}
	d.Promoted = []lock.Waiter{{Lease: lock.Lease{TTL: 4 * time.Second}}}
	if got := LongestOf(d); got != 4*time.Second {
		t.Errorf("LongestOf = %v, want that of the promoted waiter", got)
	}
}
