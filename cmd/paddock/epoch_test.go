package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
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
