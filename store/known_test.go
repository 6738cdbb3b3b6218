package store

import (
	"errors"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func TestADatabaseIsKnownAgainOrNot(t *testing.T) {
	t.Parallel()
	seen := known{number: 3, flushed: 1000}
	granted := known{number: 3, flushed: 1000, token: 160}
	for name, c := range map[string]struct {
		epoch epoch
		known known
		want  error
	}{
		"the same as before":                              {epoch{number: 3, here: true, flushed: 1000}, seen, nil},
		"its log has grown":                               {epoch{number: 3, here: true, flushed: 1001}, seen, nil},
		"this process has seen none yet":                  {epoch{number: 3, here: true, flushed: 5}, known{}, nil},
		"another replica has begun an epoch":              {epoch{number: 4, here: true, flushed: 5}, seen, nil},
		"a standby was promoted":                          {epoch{number: 3, flushed: 2000}, seen, errAnother},
		"its files were put back":                         {epoch{number: 3, here: true, flushed: 999}, seen, errBack},
		"its files were put back, and others wrote since": {epoch{number: 3, here: true, flushed: 9000, lastToken: 100}, granted, errLost},
		"its files were put back, and few tokens were lost": {epoch{number: 3, here: true, flushed: 9000, lastToken: 160, lastEvent: 499},
			known{number: 3, flushed: 1000, token: 150, event: 500}, errLost},
		"its events have gone on":                       {epoch{number: 3, here: true, flushed: 9000, lastEvent: 500}, known{number: 3, event: 500}, nil},
		"an epoch has begun without the last events":    {epoch{number: 4, here: true, lastEvent: 499}, known{number: 3, event: 500}, nil},
		"its tokens have gone on":                       {epoch{number: 3, here: true, flushed: 1001, lastToken: 161}, granted, nil},
		"its tokens are those that were granted":        {epoch{number: 3, here: true, flushed: 1001, lastToken: 160}, granted, nil},
		"they were put back to before an epoch":         {epoch{number: 2, here: true, flushed: 5000}, seen, errBack},
		"it has lost how long leases were granted for":  {epoch{number: 4, here: true}, known{number: 3, longest: 1}, errShort},
		"a quorum is needed, and there are standbys":    {epoch{number: 3, here: true, flushed: 1000, quorum: true, replicates: true}, seen, nil},
		"a quorum is needed, and there are no standbys": {epoch{number: 3, here: true, flushed: 1000, quorum: true}, seen, errNoStandby},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := c.epoch.check(c.known); !errors.Is(err, c.want) {
				t.Errorf("check = %v, want %v", err, c.want)
			}
		})
	}
}

func TestWhatIsKnownOutlivesTheDatabase(t *testing.T) {
	t.Parallel()
	var o epochs
	o.note(epoch{number: 1, flushed: 100, longest: time.Minute, lastEvent: 11}, 7, 12)
	o.note(epoch{number: 1, flushed: 90, longest: time.Second, lastEvent: 9}, 5, 10) // heard late
	if got, want := o.known(), (known{number: 1, flushed: 100, longest: time.Minute, token: 7, event: 12}); got != want {
		t.Errorf("known = %+v, want %+v", got, want)
	}
	o.note(epoch{number: 2, flushed: 10, lastEvent: 8}, 1<<32, 0)
	o.note(epoch{number: 1, flushed: 200, lastEvent: 20}, 0, 21) // of the database that was
	if got, want := o.known(), (known{number: 2, flushed: 10, longest: time.Minute, token: 1 << 32, event: 8}); got != want {
		t.Errorf("known = %+v, want %+v", got, want)
	}
}

func TestALongerLeaseIsNotedFirst(t *testing.T) {
	t.Parallel()
	e := epoch{longest: time.Minute}
	if err := e.covers(time.Minute); err != nil {
		t.Errorf("as long as before: %v", err)
	}
	longer := new(longerError)
	if err := e.covers(time.Minute + 1); !errors.As(err, &longer) || longer.length != time.Minute+1 {
		t.Errorf("longer than before: %v", err)
	}
	d := lock.Decision{Lease: lock.Lease{TTL: 2 * time.Second, Grace: time.Second}}
	d.Promoted = []lock.Waiter{{Lease: lock.Lease{TTL: 4 * time.Second}}}
	if got := longestOf(d); got != 4*time.Second {
		t.Errorf("longestOf = %v, want that of who was promoted", got)
	}
}
