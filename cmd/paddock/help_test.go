package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestEveryRequestFieldIsExplainedByItsFlag(t *testing.T) {
	t.Parallel()
	var line commandLine
	parser, err := newParser(&line, variablesOf(nil), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	flags := map[string]bool{"NAME": true}
	for _, command := range parser.Model.Children {
		for _, flag := range command.Flags {
			flags["--"+flag.Name] = true
		}
	}
	for _, field := range []string{
		"name", "lock", "lease_id", "holder", "mode", "capacity", "ttl_ms", "grace_ms", "max_hold_ms", "metadata", "wait_ms",
		"fencing_token", "slot", "acquired_at", "reason", "prefix", "state", "limit", "cursor",
	} {
		for flag := range strings.SplitSeq(flagOf(field), ", ") {
			if !flags[flag] {
				t.Errorf("%s is given by %q, which is not in %v", field, flag, slices.Sorted(maps.Keys(flags)))
			}
		}
	}
}

func TestEveryCommandHasHelpWithAnExample(t *testing.T) {
	t.Parallel()
	var line commandLine
	parser, err := newParser(&line, variablesOf(nil), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Leaves(true) {
		if command.ClosestGroup() == nil || !strings.HasSuffix(command.Help, ".") {
			t.Errorf("%s has no group, or no description", command.FullPath())
		}
		if help := command.Detail + command.Parent.Detail; command.Name != "version" &&
			!strings.Contains(help, command.FullPath()) {
			t.Errorf("the help of %s has no example", command.FullPath())
		}
	}
	_, stdout, _ := call(t, nil, "--help")
	locks, service, more := strings.Index(stdout, "\nLocks:"), strings.Index(stdout,
		"\nRunning a service:"), strings.Index(stdout, "\nMore:")
	if locks < 0 || service < locks || more < service {
		t.Errorf("the commands are not in their groups:\n%s", stdout)
	}
}
