package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/access"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// wideOutputs returns an output of each kind whose cells are wider than a terminal.
func wideOutputs() map[string]output {
	now := time.Now()
	holder, reason := "漢字 worker "+strings.Repeat("x", 60), "a reason "+strings.Repeat("in many words ", 12)
	lease := lock.LeaseInfo{
		Holder: holder, Mode: lock.Exclusive, Token: 10496, AcquiredAt: now, ExpiresAt: now, Remaining: time.Hour,
		Metadata: json.RawMessage(`{"why":"` + reason + `"}`), Set: []string{"a", "jobs:nightly"},
	}
	l := lock.Lock{
		Name: "jobs:nightly:" + strings.Repeat("eu:", 20), State: lock.Held, Token: 10496, ChangedAt: now, Waiters: 12,
		Leases: []lock.LeaseInfo{lease, lease}, Frozen: &lock.Freeze{Scope: "jobs:", Reason: reason, Until: now},
		Above: []lock.LeaseInfo{lease},
	}
	session := lock.SessionInfo{Ref: 7, Holder: holder, OpenedAt: now, ExpiresAt: now, Metadata: lease.Metadata,
		Locks: []lock.SessionLock{{Name: l.Name, Mode: lock.Shared, Token: 7}}}
	event := lock.Event{ID: 1 << 40, At: now, Name: l.Name, Kind: lock.Revoked, Holder: holder, Reason: reason, Token: 10496, Mode: lock.Exclusive}
	waiter := lock.WaiterInfo{Position: 12, Holder: holder, Mode: lock.Exclusive, JoinedAt: now, Waited: time.Minute,
		BlockedBy: lock.BlockedByHolders, Leases: []lock.LeaseInfo{lease}}
	step := lock.DeadlockStep{Name: l.Name, Holder: holder, WaitsFor: holder}
	grant := grantOf(lock.Lease{Name: l.Name, Holder: holder, Token: 7, Metadata: lease.Metadata, ExpiresAt: now})
	return map[string]output{
		"get": showLock(l), "list": showLocks([]lock.Lock{l, {Name: "a", State: lock.Free}}), "tree": showTree("jobs", []lock.Lock{l}),
		"queue": showQueue(lock.QueueInfo{Name: l.Name, Waiters: []lock.WaiterInfo{waiter},
			Chain: &lock.WaitChain{Steps: []lock.DeadlockStep{step, step}}}),
		"history": showHistory([]lock.Event{event}), "session": showSession(session), "sessions": showSessions([]lock.SessionInfo{session}),
		"holds":  showHolds(paddock.HoldList{Holds: []lock.Hold{{Holder: holder, GrantedAt: now, EndedAt: now, Token: 7}}}),
		"keys":   showKeys([]access.Key{{ID: "k3f9a2xyqw", Name: holder, Prefixes: []string{l.Name}, CreatedAt: now, ExpiresAt: now}}, now),
		"epochs": showEpochs([]cellEpochs{{epochs: []store.Epoch{{Number: 12, BeganAt: now, Timeline: "1", Reason: reason, MaxLease: time.Hour}}, now: now}}),
		"lease":  showLease(grant),
	}
}

func grantOf(l lock.Lease) lock.Grant { return lock.Grant{Lease: l, Leases: []lock.Lease{l}} }

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	t.Parallel()
	for name, o := range wideOutputs() {
		for _, width := range []int{120, 80, 40, 20} {
			var b bytes.Buffer
			if err := o.write(&b, asTable, style{width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if got := screen.StringWidth(strings.TrimSuffix(line, "\n")); got > width {
					t.Errorf("%s at %d: a line has %d columns:\n%s", name, width, got, b.String())
					break
				}
			}
		}
	}
}

// TestNothingIsCutInAPipe has all that a cell has in a pipe, and with -o wide.
func TestNothingIsCutInAPipe(t *testing.T) {
	t.Parallel()
	for name, o := range wideOutputs() {
		var b bytes.Buffer
		if err := o.write(&b, asWide, style{}); err != nil || strings.Contains(b.String(), "…") || !strings.Contains(b.String(), strings.Repeat("x", 60)) && name != "epochs" {
			t.Errorf("%s: %v\n%s", name, err, b.String())
		}
	}
}

func TestLeaseIDIsNeverCut(t *testing.T) {
	t.Parallel()
	id := lock.LeaseID{15: 7}
	var b bytes.Buffer
	o := showLease(grantOf(lock.Lease{Name: "a", ID: id, Token: 7}))
	if err := o.write(&b, asTable, style{width: 40}); err != nil || !uuids.MatchString(b.String()) {
		t.Errorf("%v:\n%s", err, b.String())
	}
}

func TestLeastImportantColumnsAreLeftOutFirst(t *testing.T) {
	t.Parallel()
	titles := []string{"LOCK", "STATE", "MODE", "TOKEN", "HOLDER", "EXPIRES", "LEFT", "WAITING"}
	natural := []int{12, 5, 9, 6, 20, 25, 5, 7}
	for total, want := range map[int][]int{
		0:   natural,
		103: natural,
		102: {12, 5, 9, 6, 19, 25, 5, 7},
		80:  {12, 5, 9, 6, 20, 0, 5, 7},
		70:  {12, 5, 9, 6, 14, 0, 5, 7},
		60:  {12, 5, 0, 6, 15, 0, 5, 7},
		40:  {12, 5, 0, 0, 12, 0, 5, 0},
		20:  {12, 5, 0, 0, 0, 0, 0, 0},
		5:   {5, 0, 0, 0, 0, 0, 0, 0},
	} {
		if got := fit(titles, natural, total); !slices.Equal(got, want) {
			t.Errorf("at %d the widths are %v, want %v", total, got, want)
		}
	}
}

func TestNarrowTerminalShowsShortInstants(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	events := []lock.Event{{ID: 1, At: at, Name: "a", Kind: lock.Granted, Holder: "me", Token: 7}}
	for width, want := range map[int]string{0: local(at)[:19] + ".000", 120: local(at)[:19], 40: "01-02 03:04:05  granted"} {
		var b bytes.Buffer
		if err := showHistory(events).write(&b, asTable, style{width: width}); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("at %d: %v, want %s in\n%s", width, err, want, b.String())
		}
	}
}

func TestColoursTellTheState(t *testing.T) {
	t.Parallel()
	held := lock.LeaseInfo{Holder: "held", Remaining: time.Minute}
	for want, l := range map[string]lock.Lock{
		green + "held" + plain:            {Name: "a", State: lock.Held, Leases: []lock.LeaseInfo{held}},
		yellow + "grace" + plain:          {Name: "a", State: lock.InGrace},
		yellow + "revoked, grace" + plain: {Name: "a", State: lock.InGrace, Leases: []lock.LeaseInfo{{Revoked: true}}},
		red + "suspect" + plain:           {Name: "a", State: lock.Suspect},
		red + "frozen until":              {Name: "a", State: lock.Free, Frozen: &lock.Freeze{Scope: "a"}},
	} {
		var b, without bytes.Buffer
		o := showLocks([]lock.Lock{l})
		if err := o.write(&b, asTable, style{colour: true}); err != nil || !strings.Contains(b.String(), want) || strings.Contains(b.String(), green+"held"+plain) != (l.State == lock.Held) {
			t.Errorf("%v, want %q in %q", err, want, b.String())
		}
		if strings.Count(b.String(), "held"+plain) > 1 {
			t.Errorf("a holder of that name is coloured: %q", b.String())
		}
		if err := o.write(&without, asTable, style{}); err != nil || strings.Contains(without.String(), "\x1b") {
			t.Errorf("without colours it prints %q, %v", without.String(), err)
		}
	}
}

func TestColoursNeedATerminalThatAllowsThem(t *testing.T) {
	t.Parallel()
	for want, envs := range map[bool][]map[string]string{
		true:  {{"TERM": "xterm"}, {"TERM": "xterm", "NO_COLOR": ""}},
		false: {{"TERM": "dumb"}, {}, {"TERM": "xterm", "NO_COLOR": "1"}},
	} {
		for _, env := range envs {
			if got := (&program{env: variablesOf(env)}).allowsColour(); got != want {
				t.Errorf("%v: %t", env, got)
			}
		}
	}
	if s := (&program{env: variablesOf(nil), stdout: new(bytes.Buffer)}).style(asTable); s != (style{}) {
		t.Errorf("a pipe has the style %+v", s)
	}
}

func TestYAMLIsEscapedAndMeansTheSame(t *testing.T) {
	t.Parallel()
	type inner struct {
		Text  string         `json:"text"`
		Empty []string       `json:"empty"`
		None  map[string]any `json:"none"`
	}
	for _, v := range []any{
		[]inner{}, []any{}, "true", 7, nil, map[string]any{}, []any{[]any{"a", []any{}}, map[string]any{"b": []int{1, 2}}},
		map[string]any{"yes": "no", "n": 1.5, "on": true, "nothing": nil, "a: b": "x # y", "-": "- z", "at": "2026-01-02T03:04:05Z"},
		[]inner{{Text: strings.ToValidUTF8(hostile, "") + "\U000e0041"}, {Text: "jobs:nightly", Empty: []string{}, None: map[string]any{"k": "007"}}},
	} {
		var b bytes.Buffer
		if err := writeYAML(&b, v); err != nil {
			t.Fatal(err)
		}
		if escaped := strings.ReplaceAll(b.String(), "\n", ""); !printableOnly(escaped) {
			t.Errorf("it has control characters: %q", b.String())
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := yaml.Unmarshal(b.Bytes(), &got); err != nil {
			t.Errorf("%v:\n%s", err, b.String())
		}
		if err := json.Unmarshal(text, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s became %v:\n%s", text, got, b.String())
		}
	}
}

func printableOnly(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' && r != 'é' && r < 0x4000 || r == 0xe0041 }) < 0
}

// TestEveryCommandThatShowsHasTheSameFormats looks at all commands with a flag --output.
func TestEveryCommandThatShowsHasTheSameFormats(t *testing.T) {
	t.Parallel()
	var line commandLine
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	with := map[string]bool{}
	for _, command := range parser.Model.Leaves(true) {
		for _, flag := range command.Flags {
			if flag.Name == "output" {
				with[command.FullPath()] = true
				if formats := strings.TrimSuffix(flag.Enum, ",env"); formats != "table,wide,json,yaml,name" || flag.Short != 'o' {
					t.Errorf("%s has the formats %s", command.FullPath(), flag.Enum)
				}
			}
		}
	}
	for _, name := range []string{
		"get", "list", "queue", "history", "watch", "events", "token verify", "leader", "freezes", "rule list", "key list", "epoch list", "tree list", "version",
		"migrate version", "acquire", "renew", "revoke", "freeze", "rule set", "tree declare", "config",
	} {
		if !with["paddock "+name] {
			t.Errorf("%s has no flag --output", name)
		}
	}
}

func TestNamesAreOneALine(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("jobs:a"), Holder: "me"})
	d.hold(lock.Acquire{Locks: lock.One("jobs:b"), Holder: "me"})
	d.enqueue(lock.Acquire{Locks: lock.One("jobs:b"), Holder: "she"})
	d.expectExit(exitOK, "freeze", "other:", "--reason=x")
	d.expectExit(exitOK, "rule", "set", "batch:", "--max-ttl=5m")
	d.expectExit(exitOK, "tree", "declare", "repo")
	for args, want := range map[string]string{
		"list --prefix=jobs:": "jobs:a\njobs:b\n", "get jobs:a": "jobs:a\n", "queue jobs:b": "she\n", "queue jobs:a": "", "freezes": "other:\n",
		"rule list": "batch:\n", "tree list": "repo\n", "list --sessions": "", "version": version().Version + "\n",
		"list --prefix=none": "", "watch --from=oldest --count=2": "jobs:a\njobs:b\n", "acquire c d": "c\nd\n",
		"history jobs:a": fmt.Sprintf("%d\n", d.awaitEvent("jobs:a", lock.Granted, "me").ID),
	} {
		if stdout, stderr := d.expectExit(exitOK, append(strings.Fields(args), "-o", "name")...); stdout != want || stderr != "" {
			t.Errorf("%s prints\n%s%swant\n%s", args, stdout, stderr, want)
		}
	}
}

// TestAnEmptyListIsSaidOnStandardError has nothing in it.
func TestAnEmptyListIsSaidOnStandardError(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for args, want := range map[string]string{
		"list": "No locks found.", "list --sessions": "No open sessions found.", "queue x": "No call waits for x.", "freezes": "No freezes found.",
		"rule list": "No rules found.", "tree list": "No trees found.", "history x": "No events found.", "events": "No events found.", "history x --at=1h": "No lease was held at that instant.",
	} {
		d.expectEmpty(want, strings.Fields(args)...)
		d.expectEmpty(want, append(strings.Fields(args), "-o", "wide")...)
	}
	d.expectOutput("[]\n", "list", "-o", "yaml")
	d.expectOutput("[]\n", "freezes", "-o", "yaml")
}

func TestOutputsInYAMLAreThoseInJSON(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("jobs:a"), Holder: "me", Metadata: json.RawMessage(`{"n":7,"x":[]}`)})
	for _, args := range []string{"list --state=held", "history jobs:a", "version", "freezes", "rule list"} {
		text, _ := d.expectExit(exitOK, append(strings.Fields(args), "-o", "json")...)
		other, _ := d.expectExit(exitOK, append(strings.Fields(args), "-o", "yaml")...)
		converted, err := yaml.YAMLToJSON([]byte(other))
		if err != nil {
			t.Fatalf("%s: %v\n%s", args, err, other)
		}
		if got, want := sorted(t, string(converted)), sorted(t, text); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// sorted returns JSON with its members in order, and placeholders for values that vary.
func sorted(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`"(as_of|expires_in_ms)":[^,}]+`).ReplaceAllString(string(out), `"$1":0`)
}

// TestColumnsStayWhileTimePasses: a view is redrawn each second.
func TestColumnsStayWhileTimePasses(t *testing.T) {
	t.Parallel()
	for _, width := range []int{80, 39} {
		var want string
		for _, left := range []time.Duration{59*time.Minute + 59*time.Second, 59 * time.Minute, 9 * time.Second} {
			l := lock.Lock{Name: "jobs:report-10", State: lock.Held, Leases: []lock.LeaseInfo{{Holder: strings.Repeat("x", 60), Remaining: left}}}
			var b bytes.Buffer
			mustBeNil(t, showLocks([]lock.Lock{l}).write(&b, asTable, style{width: width}))
			titles, _, _ := strings.Cut(b.String(), "\n")
			if want = cmp.Or(want, titles); titles != want || !strings.Contains(titles, "LEFT") {
				t.Errorf("with %v left of %d columns: %q, want %q", left, width, titles, want)
			}
		}
	}
}

func TestProseIsFoldedBetweenWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"short\n":                                "short\n",
		"some words that do not fit\n":           "some words that do\nnot fit\n",
		"  ok        one two          7 cases\n": "  ok  one two  7\n    cases\n",
		"ok    one\nok    some words that fit\n": "ok  one\nok  some words that\n  fit\n",
		"ok    one\nok    two\n":                 "ok    one\nok    two\n",
		"    paddock revoke jobs:nightly\n":      "    paddock revoke jobs:nightly\n",
		"averylongwordwithoutanyspaces\n":        "averylongwordwithouta\nnyspaces\n",
		"a 漢字漢字漢字漢字漢字 b\n":                       "a\n漢字漢字漢字漢字漢字\nb\n",
	} {
		var b bytes.Buffer
		f := &folder{w: &b, keep: toCopy}
		for _, part := range []string{text[:3], text[3:]} {
			mustBeNil(t, f.write([]byte(part), style{width: 21}))
		}
		if b.String() != want {
			t.Errorf("%q is folded to %q, want %q", text, b.String(), want)
		}
	}
}
