package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// A desk is where somebody has paddock at hand, and a service that it finds.
type desk struct {
	*testing.T
	base  string
	locks lock.Service
	env   map[string]string
}

// sitDown starts a service of its own for the test.
func sitDown(t *testing.T) *desk {
	t.Helper()
	base := serveHere(t, pgtest.URL(t))
	return &desk{T: t, base: base, locks: connect(t, base), env: map[string]string{"PADDOCK_URL": base, "PADDOCK_HOLDER": "me"}}
}

// runs has paddock end with that code and returns what it printed.
func (d *desk) runs(code int, args ...string) (stdout, stderr string) {
	d.Helper()
	got, stdout, stderr := call(d.T, d.env, args...)
	if got != code {
		d.Fatalf("paddock %q ended with %d, want %d:\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

// prints has paddock print that and say nothing, but for what is never the same
// and the widths of columns.
func (d *desk) prints(want string, args ...string) {
	d.Helper()
	stdout, stderr := d.runs(exitOK, args...)
	if got := squeezed(constant(stdout)); got != squeezed(want) || stderr != "" {
		d.Errorf("paddock %q printed\n%s%swant\n%s", args, got, stderr, want)
	}
}

// refuses has paddock end with that code, print nothing, and say all of those words.
func (d *desk) refuses(code int, words []string, args ...string) {
	d.Helper()
	stdout, stderr := d.runs(code, args...)
	for _, w := range words {
		if !strings.Contains(stderr, w) || stdout != "" {
			d.Errorf("paddock %q is to say %q:\n%s%s", args, w, stdout, stderr)
		}
	}
}

// holds has somebody hold the lock, for an hour unless a says otherwise.
func (d *desk) holds(a lock.Acquire) lock.Grant {
	d.Helper()
	if a.TTL == 0 {
		a.TTL = time.Hour
	}
	return acquire(d.T, d.base, a)
}

// hears waits for the next event of that kind of the lock.
func (d *desk) hears(name string, kind lock.Kind, holder string) lock.Event {
	d.Helper()
	l := &listener{scene: &scene{T: d.T, name: name}, locks: d.locks}
	return l.kind(kind, holder)
}

var (
	instants  = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
	durations = regexp.MustCompile(`\b(\d+h(\d+m)?(\d+s)?|\d+m(\d+s)?|[\d.]+m?s)\b`)
	remains   = regexp.MustCompile(`"(expires_in_ms|waited_ms)": \d+`)
	gaps      = regexp.MustCompile(`  +`)
)

// constant returns text without what is another each time.
func constant(text string) string {
	text = uuids.ReplaceAllString(instants.ReplaceAllString(text, "INSTANT"), "UUID")
	return remains.ReplaceAllString(durations.ReplaceAllString(text, "DURATION"), `"$1": N`)
}

func squeezed(text string) string { return gaps.ReplaceAllString(text, "  ") }
