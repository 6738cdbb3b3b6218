package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/client"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/proctest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
)

// A harness is a service and an environment in which paddock finds it.
type harness struct {
	*testing.T
	base  string
	locks paddock.Service
	env   map[string]string
}

// newHarness starts a service for the test, with these flags of serve.
func newHarness(t *testing.T, flags ...string) *harness {
	t.Helper()
	base := serveHere(t, pgtest.URL(t), flags...)
	return &harness{T: t, base: base, locks: replica.Connect(t, client.Options{BaseURL: base}),
		env: map[string]string{"PADDOCK_URL": base, "PADDOCK_HOLDER": "me"}}
}

// expectExit runs paddock, checks its exit code and returns its output.
func (d *harness) expectExit(code int, args ...string) (stdout, stderr string) {
	d.Helper()
	got, stdout, stderr := call(d.T, d.env, args...)
	if got != code {
		d.Fatalf("paddock %q ended with %d, want %d:\n%s%s", args, got, code, stdout, stderr)
	}
	return stdout, stderr
}

// expectOutput runs paddock and checks what it prints, except values that vary and the widths of columns. It must
// write nothing to standard error.
func (d *harness) expectOutput(want string, args ...string) {
	d.Helper()
	stdout, stderr := d.expectExit(exitOK, args...)
	want = anyToken(want)
	if got := anyToken(collapseSpaces(normalized(stdout))); got != collapseSpaces(want) || stderr != "" {
		d.Errorf("paddock %q printed\n%s%swant\n%s", args, got, stderr, want)
	}
}

// expectEmpty runs paddock and checks that it prints nothing but, on standard error, that there is nothing.
func (d *harness) expectEmpty(want string, args ...string) {
	d.Helper()
	if stdout, stderr := d.expectExit(exitOK, args...); stdout != "" || stderr != want+"\n" {
		d.Errorf("paddock %q printed\n%s%swant %s", args, stdout, stderr, want)
	}
}

// tokenPattern matches a token that is printed. The first one of a database is 1, unless a busy machine drew twice.
var tokenPattern = regexp.MustCompile(`(TOKEN  |TOKEN=|TOKENS='jobs:nightly=|"fencing_token": |permit, slot 1  )\d+`)

func anyToken(text string) string { return tokenPattern.ReplaceAllString(text, "${1}TOKEN") }

// expectFailure runs paddock and checks its exit code, that it prints nothing, and that its error contains all of
// words.
func (d *harness) expectFailure(code int, words []string, args ...string) {
	d.Helper()
	stdout, stderr := d.expectExit(code, args...)
	for _, w := range words {
		if !strings.Contains(stderr, w) || stdout != "" {
			d.Errorf("paddock %q does not contain %q:\n%s%s", args, w, stdout, stderr)
		}
	}
}

// hold acquires the lock, for an hour unless a has a TTL.
func (d *harness) hold(a lock.Acquire) lock.Grant {
	d.Helper()
	if a.TTL == 0 {
		a.TTL = time.Hour
	}
	return acquire(d.T, d.base, a)
}

// holdMany acquires n locks below the prefix, of a holder each, and returns their names, in order.
func (d *harness) holdMany(prefix string, n int) (names []string) {
	d.Helper()
	var items []lock.Command
	for i := range n {
		names = append(names, fmt.Sprintf("%s:%03d", prefix, i))
		items = append(items, lock.Acquire{Locks: lock.One(names[i]), Holder: fmt.Sprint("holder ", i), LeaseID: lock.LeaseID(uuid.New()), TTL: time.Hour})
	}
	for some := range slices.Chunk(items, 100) {
		for _, r := range d.locks.Batch(d.Context(), some) {
			if r.Err != nil {
				d.Fatal(r.Err)
			}
		}
	}
	return names
}

// awaitEvent waits for the first event of that kind and holder.
func (d *harness) awaitEvent(name string, kind lock.Kind, holder string) lock.Event {
	d.Helper()
	ctx, cancel := context.WithTimeout(d.Context(), proctest.Patience)
	defer cancel()
	for q := (paddock.EventQuery{Names: []string{name}, Wait: lock.MaxWait}); ; {
		page, err := d.locks.Events(ctx, q)
		if err != nil {
			d.Fatal(err)
		}
		for _, e := range page.Items {
			if e.Kind == kind && e.Holder == holder {
				return e
			}
		}
		q.Cursor = page.Next
	}
}

// enqueue starts an acquire that waits, for an hour's TTL, and returns when the holder is in the queue.
func (d *harness) enqueue(a lock.Acquire) {
	d.Helper()
	a.TTL, a.Wait = time.Hour, lock.MaxWait
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(d.Context())
	go func() {
		defer close(done)
		_, err := d.locks.Acquire(ctx, a)
		d.Logf("the call of %s ended with %v", a.Holder, err)
	}()
	d.Cleanup(func() {
		cancel()
		<-done
	})
	d.awaitEvent(a.Locks[0].Name, lock.Queued, a.Holder)
}

var (
	instantPattern   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`)
	durationPattern  = regexp.MustCompile(`\b(\d+h(\d+m)?(\d+s)?|\d+m(\d+s)?|[\d.]+m?s)\b`)
	remainingPattern = regexp.MustCompile(`"(expires_in_ms|waited_ms)": \d+`)
	spacesPattern    = regexp.MustCompile(`  +`)
)

// normalized returns text with placeholders for values that vary.
func normalized(text string) string {
	text = uuids.ReplaceAllString(instantPattern.ReplaceAllString(text, "INSTANT"), "UUID")
	return remainingPattern.ReplaceAllString(durationPattern.ReplaceAllString(text, "DURATION"), `"$1": N`)
}

func collapseSpaces(text string) string { return spacesPattern.ReplaceAllString(text, "  ") }
