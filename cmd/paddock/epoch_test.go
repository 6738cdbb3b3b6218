package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

func TestEpochCommandsListAndStartEpochs(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATABASE_URL": pgtest.URL(t)}
	for _, step := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"epoch", "list"}, exitOK, "installed"},
		{[]string{"epoch", "open", "--reason=nothing was lost"}, exitOK, "not paused; nothing was changed"},
		{[]string{"epoch", "new"}, exitUsage, "--reason"},
		{[]string{"epoch", "new", "--reason=x", "--above=-1"}, exitUsage, "--above is -1"},
		{[]string{"epoch", "new", "--reason=x", fmt.Sprintf("--above=%d", store.MaxAbove+1)}, exitUsage,
			"give a fencing token"},
		{[]string{"epoch", "new", "--reason=a snapshot\nof May", "--above=99"}, exitOK, "Epoch 2 has started"},
		{[]string{"epoch", "list"}, exitOK, "a snapshot of May"},
		{[]string{"epoch", "list", "-o", "json"}, exitOK, `"epoch": 2`},
		{[]string{"epoch", "quorum", "maybe"}, exitUsage, "on"},
		{[]string{"epoch", "quorum", "on"}, exitFailed, "synchronous_standby_names is empty"},
		{[]string{"epoch", "quorum", "off"}, exitOK, "Quorum required: off."},
	} {
		code, stdout, stderr := call(t, env, step.args...)
		if code != step.code || !strings.Contains(stdout+stderr, step.want) {
			t.Errorf("%v: exit code %d, want %d and %q in:\n%s%s", step.args, code, step.code, step.want, stdout, stderr)
		}
	}
}

// TestCommandsNeedTheSchema: each says how to create the one that it was told to use.
func TestCommandsNeedTheSchema(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATABASE_URL": pgtest.EmptyURL(t)}
	for schema, want := range map[string]string{"paddock": "run paddock migrate up\n", "none": "run paddock migrate up --schema none\n"} {
		env["PADDOCK_SCHEMA"] = schema
		for _, args := range [][]string{{"epoch", "list"}, {"epoch", "new", "--reason=x"}, {"epoch", "open", "--reason=x"},
			{"epoch", "quorum", "on"}, {"migrate", "version"}, {"serve", "--listen=127.0.0.1:0"}} {
			code, _, stderr := call(t, env, args...)
			if code != exitFailed || !strings.Contains(stderr, want) {
				t.Errorf("%v: exit code %d, want %d and %q in:\n%s", args, code, exitFailed, want, stderr)
			}
		}
	}
}

// TestTheAdminPageShowsThePauseOfAnEpoch on a page of a replica that runs, until an operator ends it. The events show
// where the epoch began.
func TestTheAdminPageShowsThePauseOfAnEpoch(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	base := serveHere(t, url)
	env := map[string]string{"DATABASE_URL": url}
	hold := replica.Connect(t, client.Options{BaseURL: base})
	_, err := hold.Acquire(t.Context(), lock.Acquire{Locks: lock.One("a"), LeaseID: lock.LeaseID{1}, Holder: "h", TTL: time.Hour})
	mustBeNil(t, err)
	shows := func(want bool, text string) {
		t.Helper()
		await.Until(t, fmt.Sprintf("%q is shown: %t", text, want), func() bool {
			r, err := http.Get(base + "/ui/events")
			mustBeNil(t, err)
			defer func() { mustBeNil(t, r.Body.Close()) }()
			body, err := io.ReadAll(r.Body)
			mustBeNil(t, err)
			return strings.Contains(string(body), text) == want
		})
	}
	shows(false, "Grants are paused")
	if code, _, stderr := call(t, env, "epoch", "new", "--reason=a drill"); code != exitOK {
		t.Fatal(stderr)
	}
	shows(true, "<bdi>a drill</bdi>")
	if code, _, stderr := call(t, env, "epoch", "open", "--reason=it was a drill"); code != exitOK {
		t.Fatal(stderr)
	}
	shows(false, "Grants are paused")
	_, err = hold.Acquire(t.Context(), lock.Acquire{Locks: lock.One("b"), LeaseID: lock.LeaseID{2}, Holder: "h", TTL: time.Hour})
	mustBeNil(t, err)
	shows(true, "<strong>Epoch 2 began</strong>")
	code, stdout, stderr := call(t, map[string]string{"PADDOCK_URL": base}, "events")
	if want := regexp.MustCompile(`(?s)granted +a .*new epoch .*epoch 2 began: a drill.*granted +b `); code != exitOK || !want.MatchString(stdout) {
		t.Errorf("exit code %d, %s, the events are:\n%s", code, stderr, stdout)
	}
	for flags, want := range map[string]string{
		"--kind=refused --since=1h": `epoch 2 began: a drill; .*\n$`, "--kind=refused --until=1h": `^$`, "--limit=1": `^AT .*\n.* granted +b .*\n$`,
	} {
		_, stdout, _ := call(t, map[string]string{"PADDOCK_URL": base}, append([]string{"events"}, strings.Fields(flags)...)...)
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("with %s, the events are:\n%s", flags, stdout)
		}
	}
}
