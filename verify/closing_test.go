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

const onceLock = "play:once"

// useClosings does the work of a minute, that of at least 90 seconds, and then that of another holder.
func (c *harness) useClosings() {
	c.t.Helper()
	work := lock.Acquire{Locks: lock.One(onceLock), Once: true}
	for holder, closed := range map[string]lock.Closing{"minute": {Period: lock.Minute}, "longer": {For: 90 * time.Second}} {
		work.Locks = lock.One(onceLock + ":" + holder)
		c.acquire(holder, nil, work)
		c.want(nil, c.client(holder).Release(c.t.Context(), lock.Release{Locks: work.Names(), LeaseID: c.id(holder), Closed: closed}))
		c.acquire("after "+holder, lock.ErrAlreadyDone, work)
		time.Sleep(91 * time.Second)
		c.acquire("after "+holder, nil, work)
		c.release("after " + holder)
	}
	work.Locks = lock.One(onceLock + ":opened")
	c.acquire("opened", nil, work)
	c.want(nil, c.client("opened").Release(c.t.Context(), lock.Release{Locks: work.Names(), LeaseID: c.id("opened"), Closed: lock.Closing{For: time.Hour}}))
	c.revoke("opened")
	c.revoke("opened") // again, as after a lost answer
	c.acquire("after opened", nil, work)
	c.release("after opened")
	c.poll()
}

func TestWorkThatIsDoneAgainIsFound(t *testing.T) {
	grantedAt := func(holder string, after time.Duration) func(editable) {
		return func(s editable) {
			done := s.event(lock.Released, holder)
			s.event(lock.Granted, "after "+holder).At = done.At.Add(after)
			done.Until = time.Time{} // the service has forgotten it
		}
	}
	expectAllFound(t, map[string]mutation{
		"in the same minute": {byClosings, grantedAt("minute", time.Microsecond), `in the same minute of its work`},
		"too soon":           {byClosings, grantedAt("longer", 89*time.Second), `less than 1m30s after`},
	})
}

func TestOpeningsAgreeWithRevocations(t *testing.T) {
	expectAllFound(t, map[string]mutation{
		"an opening without a call":   {byAgreement, func(s editable) { s.event(lock.Opened, "opened").Reason = "another" }, "was opened, but no call did that"},
		"an opening of another token": {byAgreement, func(s editable) { s.event(lock.Opened, "opened").Token++ }, "was revoked, but there is no event of it"},
	})
}

// TestWorkIsDoneAgainWhenItIsDue, or when an operator has opened the lock.
func TestWorkIsDoneAgainWhenItIsDue(t *testing.T) {
	t.Parallel()
	h := recordCorrect(t)
	for name, change := range map[string]func(editable){
		"in the next minute": func(s editable) {
			done := s.event(lock.Released, "minute")
			s.event(lock.Granted, "after minute").At = done.At.Truncate(time.Minute).Add(time.Minute)
		},
		"after its time": func(s editable) {
			s.event(lock.Granted, "after longer").At = s.event(lock.Granted, "longer").At.Add(90 * time.Second)
		},
		"after it was opened": func(s editable) {
			done, again := s.event(lock.Released, "longer"), s.event(lock.Granted, "after longer")
			again.At, again.Revision = done.At.Add(time.Second), again.Revision+1
			s.Events = append(s.Events, lock.Event{Kind: lock.Opened, Name: done.Name, Revision: again.Revision - 1, At: again.At})
		},
		"by a release that may have closed nothing": func(s editable) {
			release := s.call(verify.Release, "longer", 0)
			other := *release
			r := release.Request.(lock.Release)
			r.Closed = lock.Closing{}
			other.Request, other.Err = r, lock.ErrUnknownOutcome
			s.Calls = append(s.Calls, other)
			s.event(lock.Granted, "after longer").At = s.event(lock.Released, "longer").At.Add(time.Second)
		},
	} {
		changed := copyOf(h)
		change(editable{t, &changed})
		for _, c := range changed.Check(verify.CheckOptions{}).Checks {
			if c.Name == byClosings && len(c.Violations) > 0 {
				t.Errorf("%s: %s", name, c.Violations[0].Message)
			}
		}
	}
}
