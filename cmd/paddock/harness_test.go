package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// A harness is where somebody has paddock at hand, and a service that it finds.
type harness struct {
	*testing.T
	base  string
	locks lock.Service
	env   map[string]string
}

// newHarness starts a service of its own for the test.
func newHarness(t *testing.T) *harness {
	t.Helper()
	base := serveHere(t, pgtest.URL(t))
	return &harness{T: t, base: base, locks: connect(t, base), env: map[string]string{"PADDOCK_URL": base, "PADDOCK_HOLDER": "me"}}
}

// expectExit has paddock end with that code and returns what it printed.
func (d *harness) expectExit(code int, args ...string) (stdout, stderr string) {
	d.Helper()
	got, stdout, stderr := call(d.T, d.env, args...)
	if got != code {
		d.Fatalf("paddock %q ended with %d, want %d:\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

// expectOutput has paddock print that and say nothing, but for what is never the same
// and the widths of columns.
func (d *harness) expectOutput(want string, args ...string) {
	d.Helper()
	stdout, stderr := d.expectExit(exitOK, args...)
	if got := collapseSpaces(normalized(stdout)); got != collapseSpaces(want) || stderr != "" {
		d.Errorf("paddock %q printed\n%s%swant\n%s", args, got, stderr, want)
	}
}

// expectFailure has paddock end with that code, print nothing, and say all of those words.
func (d *harness) expectFailure(code int, words []string, args ...string) {
	d.Helper()
	stdout, stderr := d.expectExit(code, args...)
	for _, w := range words {
		if !strings.Contains(stderr, w) || stdout != "" {
			d.Errorf("paddock %q is to say %q:\n%s%s", args, w, stdout, stderr)
		}
	}
}

// hold has somebody hold the lock, for an hour unless a says otherwise.
func (d *harness) hold(a lock.Acquire) lock.Grant {
	d.Helper()
	if a.TTL == 0 {
		a.TTL = time.Hour
	}
	return acquire(d.T, d.base, a)
}

// awaitEvent waits for the next event of that kind of the lock.
func (d *harness) awaitEvent(name string, kind lock.Kind, holder string) lock.Event {
	d.Helper()
	l := &listener{fixture: &fixture{T: d.T, name: name}, locks: d.locks}
	return l.kind(kind, holder)
}

var (
	instantPattern   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
	durationPattern  = regexp.MustCompile(`\b(\d+h(\d+m)?(\d+s)?|\d+m(\d+s)?|[\d.]+m?s)\b`)
	remainingPattern = regexp.MustCompile(`"(expires_in_ms|waited_ms)": \d+`)
	spacesPattern    = regexp.MustCompile(`  +`)
)

// normalized returns text without what is another each time.
func normalized(text string) string {
	text = uuids.ReplaceAllString(instantPattern.ReplaceAllString(text, "INSTANT"), "UUID")
	return remainingPattern.ReplaceAllString(durationPattern.ReplaceAllString(text, "DURATION"), `"$1": N`)
}

func collapseSpaces(text string) string { return spacesPattern.ReplaceAllString(text, "  ") }
