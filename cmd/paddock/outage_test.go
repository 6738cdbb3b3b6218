package main

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/tcpproxy"
	"github.com/paddock-lock/paddock/lock"
)

// loseAnswers lets paddock reach the service through a proxy. While lost is above zero, the proxy closes a connection
// instead of answering what was asked, and was done, and decrements lost.
func (d *harness) loseAnswers() (line *tcpproxy.Proxy, lost *atomic.Int32) {
	d.Helper()
	lost = new(atomic.Int32)
	line = tcpproxy.NewChanging(d.T, "tcp", strings.TrimPrefix(d.base, "http://"), func(client io.Writer, server io.Reader) {
		for answer := make([]byte, 32<<10); ; {
			n, err := server.Read(answer)
			if err != nil || lost.Add(-1) >= 0 {
				return
			}
			if _, err := client.Write(answer[:n]); err != nil {
				return
			}
		}
	})
	d.env["PADDOCK_URL"] = "http://" + line.Address
	return line, lost
}

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
				d.useLease(d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me"}))
			}
			_, lost := d.loseAnswers()
			lost.Store(1)
			_, said := d.expectExit(exitOK, append(c.args, "--retry=1m")...)
			if !strings.Contains(said, "call failed; retrying") {
				t.Errorf("output %q", said)
			}
			page, err := d.locks.Events(t.Context(), paddock.EventQuery{})
			if err != nil || len(page.Items) == 0 || len(page.Items) > 2 || page.Items[0].Kind != lock.Granted {
				t.Errorf("want one event: %+v, %v", page.Items, err)
			}
		})
	}
}

func TestReadsOutliveAnOutage(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	g := d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me"})
	_, err := d.locks.DeclareTree(t.Context(), "repo")
	mustBeNil(t, err)
	_, lost := d.loseAnswers()
	for _, args := range []string{
		"get jobs:nightly", "list", "list --sessions", "list --tree repo", "queue jobs:nightly", "history jobs:nightly",
		"history jobs:nightly --at 1s", "events", "freezes", "rule list", "tree list", "token verify jobs:nightly " + token(g.Token),
	} {
		lost.Store(1)
		_, said := d.expectExit(exitOK, append(strings.Fields(args), "--retry=1m")...)
		if lost.Load() > 0 || !strings.Contains(said, "call failed; retrying") {
			t.Errorf("paddock %s: output %q", args, said)
		}
	}
}

func TestLongOutageExitsAsUnreachable(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PADDOCK_URL": "http://127.0.0.1:1", "PADDOCK_LEASE_ID": "5e0c7a0e-6d6e-4b0f-9e0b-0d8d2c5b6a11"}
	for _, args := range []string{
		"acquire x --retry=0s", "acquire x --retry=300ms", "renew x --retry=0s", "release x --retry=0s", "get x --retry=0s",
		"list --retry=300ms", "queue x --retry=0s", "watch --retry=0s", "watch --retry=1h --for=500ms", "revoke x --token=1 --reason=y",
	} {
		code, stdout, stderr := call(t, env, strings.Fields(args)...)
		if code != exitUnreachable || !strings.Contains(stderr, "connection refused") {
			t.Errorf("paddock %s: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestClientTimesOutItsCalls makes a call that is never answered.
func TestClientTimesOutItsCalls(t *testing.T) {
	t.Parallel()
	locks, err := serviceFlags{URL: silentServer(t)}.clientWithTimeout(time.Nanosecond)
	if err != nil {
		t.Fatal(err)
	}
	err = locks.Release(t.Context(), lock.Release{Locks: []string{"x"}, LeaseID: lock.LeaseID{1}})
	if !errors.Is(err, lock.ErrUnavailable) && !errors.Is(err, lock.ErrUnknownOutcome) {
		t.Errorf("it ended with %v", err)
	}
}
