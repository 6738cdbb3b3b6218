package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestLostAnswerIsRetried closes the connection after the service has done the work and before it answers.
func TestLostAnswerIsRetried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		held bool
	}{
		"of acquire":           {[]string{"acquire", "jobs:nightly"}, false},
		"of a waiting acquire": {[]string{"acquire", "jobs:nightly", "--wait=1h"}, false},
		"of renew":             {[]string{"renew", "jobs:nightly"}, true},
		"of release":           {[]string{"release", "jobs:nightly"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			if c.held {
				d.useLease(d.hold(lock.Acquire{Name: "jobs:nightly", Holder: "me"}))
			}
			g := newGate(t, d.base, oneWay)
			go func() {
				<-g.arrived
				g.setModeForNew(gateOpen)
			}()
			_, said := d.expectExit(exitOK, append(c.args, "--retry=1m", "--url="+g.url())...)
			if !strings.Contains(said, "call failed; retrying") {
				t.Errorf("output %q", said)
			}
			page, err := d.locks.Events(t.Context(), lock.EventQuery{})
			if err != nil || len(page.Items) == 0 || len(page.Items) > 2 || page.Items[0].Kind != lock.Granted {
				t.Errorf("want one event: %+v, %v", page.Items, err)
			}
		})
	}
}

// TestHangingServiceIsRetried leaves the first connections unanswered.
func TestHangingServiceIsRetried(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]gateMode{"at first": gateSilent, "up": gateClosed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newHarness(t)
			g := newGate(t, d.base, how)
			go func() {
				<-g.arrived
				g.setModeForNew(gateOpen)
			}()
			d.expectExit(exitOK, "acquire", "jobs:nightly", "--retry=1m", "--url="+g.url())
		})
	}
}

func TestLongOutageExitsAsUnreachable(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.useLease(d.hold(lock.Acquire{Name: "jobs:nightly", Holder: "me"}))
	g := newGate(t, d.base, gateClosed)
	d.env["PADDOCK_URL"] = g.url()
	for _, args := range [][]string{
		{"acquire", "another", "--retry=0s"}, {"acquire", "another", "--retry=300ms"}, {"renew", "jobs:nightly",
			"--retry=0s"},
		{"release", "jobs:nightly", "--retry=0s"}, {"get", "jobs:nightly"}, {"list"}, {"queue", "jobs:nightly"},
		{"watch", "--retry=0s"}, {"revoke", "jobs:nightly", "--token=1", "--reason=x"},
	} {
		d.expectFailure(exitUnreachable, nil, args...)
	}
	for _, args := range [][]string{{"get", "x"}, {"acquire", "x", "--retry=0s"}, {"release", "x", "--retry=0s"}} {
		d.expectFailure(exitUnreachable, []string{"connection refused"}, append(args, "--url=http://127.0.0.1:1")...)
	}
}

// TestClientTimesOutItsCalls makes a call that is never answered.
func TestClientTimesOutItsCalls(t *testing.T) {
	t.Parallel()
	locks, err := serviceFlags{URL: newGate(t, "http://127.0.0.1:1", gateSilent).url()}.clientWithTimeout(time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	err = locks.Release(t.Context(), lock.Release{Name: "x", LeaseID: lock.LeaseID{1}})
	if !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("it ended with %v", err)
	}
}
