package main

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestEveryRequestFieldIsExplainedByItsFlag(t *testing.T) {
	t.Parallel()
	var line commandLine
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, t.Output())
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
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, t.Output())
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

// TestEveryDefaultIsShownInOneStyle looks at all flags and arguments of all commands.
func TestEveryDefaultIsShownInOneStyle(t *testing.T) {
	t.Parallel()
	var line commandLine
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	check := func(command string, v *kong.Value, placeholder string) {
		help, unset := describe(v), v.Tag.Get("unset")
		if v.Default != "" && unset != "" || strings.Contains(v.Help, "efault") || strings.HasSuffix(v.Help, ").") {
			t.Errorf("%s: %s has more than one default, or its help repeats one: %s", command, v.Summary(), help)
		}
		if d := cmp.Or(v.Default, unset); d != "" && !strings.Contains(help, ". [default: "+d+"]") {
			t.Errorf("%s: %s does not show its default %q: %s", command, v.Summary(), d, help)
		}
		if v.Default != "" && strings.Contains(placeholder, v.Default) {
			t.Errorf("%s: %s shows its default instead of a placeholder: %s", command, v.Summary(), placeholder)
		}
		number := v.Target.CanInt() || v.Target.CanUint() || v.Target.CanFloat()
		if number && !v.Required && v.Default == "" && unset == "" {
			t.Errorf("%s: %s does not say what applies without it; add the tag default, or unset", command, v.Summary())
		}
	}
	for _, command := range parser.Model.Leaves(true) {
		for _, flag := range slices.Concat(parser.Model.Flags, command.Flags) {
			check(command.FullPath(), flag.Value, flag.FormatPlaceHolder())
		}
		for _, argument := range command.Positional {
			check(command.FullPath(), argument, "")
		}
	}
	_, stdout, _ := call(t, nil, "serve", "--help")
	for _, want := range []string{`--event-retention=DURATION\s+How long to keep events. \[default: 7d\]\s+\[\$PADDOCK_EVENT`,
		`--default-ttl=DURATION\s[^[]*\[default:\s+30s, or the nearest`, `--listen=ADDRESS\s[^[]*\[default: 127.0.0.1:8080\]`} {
		if !regexp.MustCompile(want).MatchString(stdout) {
			t.Errorf("want %s in:\n%s", want, stdout)
		}
	}
}

func TestHelpAndVersionAreCommandsAndFlags(t *testing.T) {
	t.Parallel()
	helpOf := func(args ...string) string {
		_, text, _ := call(t, nil, append(args, "--help")...)
		return text
	}
	version := versionLine()
	for _, c := range []struct {
		args                   []string
		code                   int
		stdout, stderr, reason string
	}{
		{[]string{"help"}, exitOK, helpOf(), "", ""},
		{[]string{"-h"}, exitOK, helpOf(), "", ""},
		{nil, exitUsage, "", helpOf(), "data goes to standard output; this is a wrong command line"},
		{[]string{"help", "run"}, exitOK, helpOf("run"), "", ""},
		{[]string{"help", "migrate", "up"}, exitOK, helpOf("migrate", "up"), "", ""},
		{[]string{"help", "help"}, exitOK, helpOf("help"), "", ""},
		{[]string{"help", "servee"}, exitUsage, "", "paddock: unexpected argument servee, did you mean one of \"serve\", \"service\"? (see paddock --help)\n", ""},
		{[]string{"servee"}, exitUsage, "", "paddock: unexpected argument servee, did you mean one of \"serve\", \"service\"? (see paddock --help)\n", ""},
		{[]string{"hepl"}, exitUsage, "", "paddock: unexpected argument hepl, did you mean one of \"cell\", \"help\"? (see paddock --help)\n", ""},
		{[]string{"migrate"}, exitUsage, "", "paddock: the command is missing; give up, down or version, as in paddock migrate up (see paddock migrate --help)\n", ""},
		{[]string{"version"}, exitOK, version, "", ""},
		{[]string{"--version"}, exitOK, version, "", ""},
		{[]string{"run", "--version"}, exitOK, version, "", "its arguments are not missed"},
		{[]string{"run", "--url=x", "jobs", "--", "--version"}, exitUsage, "", "", "it is an argument of the command here"},
	} {
		code, stdout, stderr := call(t, nil, c.args...)
		if code != c.code || stdout != c.stdout || stderr != c.stderr && c.stderr != "" {
			t.Errorf("%q: exit code %d, want %d (%s):\n%s\nwant:\n%s%s", c.args, code, c.code, c.reason, stdout+stderr, c.stdout, c.stderr)
		}
	}
	if text := helpOf("run"); !strings.Contains(text, "\npaddock run [flags] NAME -- CMD ARGS…\n\npaddock run [flags] --lock ") {
		t.Errorf("the lines of usage are joined:\n%s", text)
	}
	if text := helpOf(); !strings.Contains(text, "\n  help ") || !strings.Contains(text, "--version ") {
		t.Errorf("help does not list itself, or the version:\n%s", text)
	}
}
