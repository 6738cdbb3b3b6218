package main

import (
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock/lock"
)

// patience is the variable by which tests on a busy machine get their answers, too.
const patience = "PADDOCK_COMPLETION_TIMEOUT"

// completed returns what is printed for the scripts, without texts for people.
func completed(t *testing.T, env map[string]string, words ...string) string {
	t.Helper()
	patient := map[string]string{patience: "1m"}
	maps.Copy(patient, env)
	code, stdout, stderr := call(t, patient, append([]string{"__complete", "--"}, words...)...)
	if code != exitOK || stderr != "" {
		t.Errorf("%q: exit code %d: %s", words, code, stderr)
	}
	stdout = regexp.MustCompile(`(?m)\t.*$`).ReplaceAllString(stdout, "")
	return strings.ReplaceAll(strings.TrimSuffix(stdout, "\n"), "\n", " ")
}

func TestWordsAreCompletedFromTheModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{"re", "none renew release revoke"},
		{"__", "none"},
		{"key ", "none new list revoke"},
		{"key n", "none new"},
		{"key new --ro", "none --role"},
		{"key new --role ", "none read lock admin"},
		{"key new --role=l", "none --role=lock"},
		{"key new --auth-file ", "files"},
		{"key new --auth-file=k", "files"},
		{"key new ", "none"},
		{"list -o ", "none table wide json yaml name"},
		{"list -o json --s", "none --state --sort --sessions"},
		{"list --state=h", "none --state=held"},
		{"list --sort ", "none waiters age ending"},
		{"list --log-level ", "none debug info warn error"},
		{"--log-level warn li", "none list"},
		{"events --kind exp", "none expired"},
		{"events --kind expired,re", "none expired,released expired,revoked expired,refused"},
		{"events --since ", "none"},
		{"watch --from ", "none now oldest"},
		{"run --once-per ", "none minute hour day week month"},
		{"run a -- ", "command 3"},
		{"run a -- make -o ", "command 3"},
		{"run a make te", "command 2"},
		{"run --wait 1m --lock a -- m", "command 6"},
		{"session ma", "command 1"},
		{"session -- make --", "command 2"},
		{"session --ho", "none --holder"},
		{"completion ", "none bash zsh fish"},
		{"man ", "dirs"},
		{"help mig", "none migrate"},
		{"help migrate ", "none up down version"},
		{"epoch quorum ", "none on off"},
		{"no-such-command ", "none"},
		{"list --no-such-flag ", "none"},
		{"tree declare a b", "none"},
	} {
		words := strings.Split(c.line, " ")
		if got := completed(t, nil, words...); !strings.HasPrefix(got+" ", c.want+" ") || strings.HasPrefix(c.want, "none") && got != c.want {
			t.Errorf("%q is completed by %q, want %q", c.line, got, c.want)
		}
	}
	if got := completed(t, nil, ""); !strings.HasPrefix(got, "none serve dev ") || strings.Contains(got, "__complete") {
		t.Errorf("the commands are %s", got)
	}
}

func TestNamesAreCompletedByTheService(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	for _, name := range []string{"jobs:nightly", "jobs:weekly:a", "jobs:weekly:b", "uploads"} {
		d.hold(lock.Acquire{Locks: lock.One(name), Holder: "me"})
	}
	s, err := d.locks.OpenSession(t.Context(), lock.OpenSession{ID: lock.SessionID(uuid.New()), Holder: "worker 1", TTL: time.Hour})
	mustBeNil(t, err)
	_, err = d.locks.Freeze(t.Context(), lock.FreezeRequest{Scope: "frozen:", Reason: "a move"})
	mustBeNil(t, err)
	_, err = d.locks.SetRule(t.Context(), lock.Rule{Scope: "bound", MaxTTL: time.Hour})
	mustBeNil(t, err)
	_, err = d.locks.DeclareTree(t.Context(), "repo")
	mustBeNil(t, err)
	ref := s.ID.Ref().String()
	elsewhere := map[string]string{"PADDOCK_URL": "http://127.0.0.1:1"}
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts no connection, and the kernel opens them
	mustBeNil(t, err)
	defer mustClose(t, listener)
	silent := map[string]string{"PADDOCK_URL": "http://" + listener.Addr().String(), patience: "100ms"}
	for _, c := range []struct {
		env  map[string]string
		line string
		want string
	}{
		{d.env, "get jobs:n", "none jobs:nightly"},
		{d.env, "get ", "none jobs:nightly jobs:weekly:a jobs:weekly:b uploads"},
		{d.env, "acquire jobs:nightly u", "none uploads"},
		{d.env, "run --lock=u", "none --lock=uploads"},
		{d.env, "release -- u", "none uploads"},
		{d.env, "list --prefix j", "none jobs:"},
		{d.env, "list --prefix jobs:", "none jobs:nightly jobs:weekly:"},
		{d.env, "freeze jobs:w", "none jobs:weekly:"},
		{d.env, "get --session ", "none " + ref},
		{d.env, "revoke --session=" + ref[:4], "none --session=" + ref},
		{d.env, "thaw ", "none frozen:"},
		{d.env, "rule remove ", "none bound"},
		{d.env, "tree remove ", "none repo"},
		{d.env, "get --url=http://127.0.0.1:1 ", "none"},
		{d.env, "get --key-file /nowhere ", "none"},
		{elsewhere, "get ", "none"},
		{silent, "get ", "none"},
		{elsewhere, "get --url " + d.base + " u", "none uploads"},
	} {
		if got := completed(t, c.env, strings.Split(c.line, " ")...); got != c.want {
			t.Errorf("%q is completed by %q, want %q", c.line, got, c.want)
		}
	}
	_, printed, _ := call(t, d.env, "__complete", "--timeout=1m", "--", "thaw", "")
	if printed != "none\nfrozen:\ta move\n" {
		t.Errorf("the freeze is shown as %q", printed)
	}
}

// TestBashCompletes runs the script in bash, which splits words at colons and equals signs.
func TestBashCompletes(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	d.hold(lock.Acquire{Locks: lock.One("jobs:nightly"), Holder: "me"})
	d.hold(lock.Acquire{Locks: lock.One("jobs:weekly"), Holder: "me"})
	dir := t.TempDir()
	mustBeNil(t, os.Symlink(self(t), filepath.Join(dir, "paddock")))
	_, script, _ := call(t, nil, "completion", "bash")
	for _, c := range []struct{ line, want string }{
		{"paddock rele", "release"},
		{"paddock get jobs:", "nightly weekly"},
		{"paddock get jobs:n", "nightly"},
		{"paddock get  'jobs:n", "jobs:nightly"},
		{"paddock list --output=j", "json"},
		{"paddock list --output ", "table wide json yaml name"},
		{"paddock list --prefix=j", "jobs:"},
		{"paddock events --kind expired,rel", "expired,released"},
		{"paddock get --url=http://127.0.0.1:1 j", ""},
		{"paddock get --metadata '{\"a\": 1}' ", ""},
		{"paddock key new --auth-file k", ""},
		{"paddock run jobs:nightly -- getopt", "getopts"},
	} {
		bash := exec.Command("bash", "--norc", "-c", script+"\n"+`
			COMP_LINE=$1 COMP_POINT=${#1}; shift
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
			_paddock && echo "${COMPREPLY[@]}"`, "bash", c.line)
		bash.Args = append(bash.Args, splitLikeBash(c.line)...)
		bash.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "PADDOCK_URL="+d.base, patience+"=1m", actAsPaddock+"=1")
		said, err := bash.CombinedOutput()
		got := strings.TrimSpace(string(said))
		if strings.HasSuffix(c.want, "getopts") && strings.Contains(" "+got+" ", " getopts ") {
			got = c.want // other programs may be installed
		}
		if err != nil || got != c.want {
			t.Errorf("%q: %v: %s, want %s", c.line, err, got, c.want)
		}
	}
}

// splitLikeBash returns the words of COMP_WORDS.
func splitLikeBash(line string) []string {
	words := regexp.MustCompile(`'[^']*'?|[:=]+|[^\s:=']+`).FindAllString(line, -1)
	if strings.HasSuffix(line, " ") {
		words = append(words, "")
	}
	return words
}

// TestEveryCompletionHasValues looks for kinds of names of which the service is not asked.
func TestEveryCompletionHasValues(t *testing.T) {
	t.Parallel()
	d := newHarness(t)
	var line commandLine
	parser, err := newParser(&line, &sources{env: variablesOf(nil)}, t.Output())
	mustBeNil(t, err)
	for _, n := range shownNodes(parser.Model.Node) {
		for _, v := range n.Values() {
			kind := v.Tag.Get("complete")
			if kind == "" || kind == "kind" || kind == "command" || kind == "dir" || strings.Contains(kind, ",") {
				continue
			}
			service, err := (serviceFlags{URL: d.base}).client()
			mustBeNil(t, err)
			if _, err := namesOfKind(t.Context(), service, kind, ""); err != nil {
				t.Error(fmt.Errorf("%s of %s: %w", v.Summary(), n.FullPath(), err))
			}
		}
	}
}
