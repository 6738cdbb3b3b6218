package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestALostAnswerIsAskedForAgain cuts the connection when the service has done what
// it was asked, and before it says so.
func TestALostAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		held bool
	}{
		"of acquire":        {[]string{"acquire", "jobs:nightly"}, false},
		"of one that waits": {[]string{"acquire", "jobs:nightly", "--wait=1h"}, false},
		"of renew":          {[]string{"renew", "jobs:nightly"}, true},
		"of release":        {[]string{"release", "jobs:nightly"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sitDown(t)
			if c.held {
				d.mine(d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "me"}))
			}
			g := newGate(t, d.base, oneWay)
			go func() {
				<-g.arrived
				g.next(wide)
			}()
			_, said := d.runs(exitOK, append(c.args, "--retry=1m", "--url="+g.url())...)
			if !strings.Contains(said, "no answer yet, trying again") {
				t.Errorf("it said %q", said)
			}
			page, err := d.locks.Events(t.Context(), lock.EventQuery{})
			if err != nil || len(page.Items) == 0 || len(page.Items) > 2 || page.Items[0].Kind != lock.Granted {
				t.Errorf("it is to have happened once: %+v, %v", page.Items, err)
			}
		})
	}
}

// TestAServiceThatHangsIsAskedAgain has the first connections lead nowhere.
func TestAServiceThatHangsIsAskedAgain(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]passage{"at first": mute, "up": shut} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sitDown(t)
			g := newGate(t, d.base, how)
			go func() {
				<-g.arrived
				g.next(wide)
			}()
			d.runs(exitOK, "acquire", "jobs:nightly", "--retry=1m", "--url="+g.url())
		})
	}
}

func TestAnOutageThatLastsIsNoRefusal(t *testing.T) {
	t.Parallel()
	d := sitDown(t)
	d.mine(d.holds(lock.Acquire{Name: "jobs:nightly", Holder: "me"}))
	g := newGate(t, d.base, shut)
	d.env["PADDOCK_URL"] = g.url()
	for _, args := range [][]string{
		{"acquire", "another", "--retry=0s"}, {"acquire", "another", "--retry=300ms"}, {"renew", "jobs:nightly", "--retry=0s"},
		{"release", "jobs:nightly", "--retry=0s"}, {"get", "jobs:nightly"}, {"list"}, {"queue", "jobs:nightly"},
		{"watch", "--retry=0s"}, {"revoke", "jobs:nightly", "--token=1", "--reason=x"},
	} {
		d.refuses(exitUnreachable, nil, args...)
	}
	for _, args := range [][]string{{"get", "x"}, {"acquire", "x", "--retry=0s"}, {"release", "x", "--retry=0s"}} {
		d.refuses(exitUnreachable, []string{"connection refused"}, append(args, "--url=http://127.0.0.1:1")...)
	}
}

// TestTheClientOfACommandEndsItsCallsByItself has one that would wait for ever.
func TestTheClientOfACommandEndsItsCallsByItself(t *testing.T) {
	t.Parallel()
	locks, err := serviceFlags{URL: newGate(t, "http://127.0.0.1:1", mute).url()}.clientWithTimeout(time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	err = locks.Release(t.Context(), lock.Release{Name: "x", LeaseID: lock.LeaseID{1}})
	if !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("it ended with %v", err)
	}
}
