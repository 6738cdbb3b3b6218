package sim

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Trace is the log of a run.
type Trace struct {
	start time.Time

	mu      sync.Mutex
	entries []entry
}

// An entry is one event of a run.
type entry struct {
	at     time.Duration
	actor  string // the worker or server
	text   string
	detail bool // about messages, not about workers and servers
}

func newTrace() *Trace { return &Trace{start: time.Now()} }

// now returns how long the run has lasted.
func (t *Trace) now() time.Duration { return time.Since(t.start) }

func (t *Trace) note(actor, format string, args ...any) {
	t.add(entry{actor: actor, text: fmt.Sprintf(format, args...)})
}

func (t *Trace) detail(actor, format string, args ...any) {
	t.add(entry{actor: actor, text: fmt.Sprintf(format, args...), detail: true})
}

func (t *Trace) add(e entry) {
	e.at = t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, e)
}

// sorted returns the entries in an order that does not depend on the order of goroutines at one instant.
func (t *Trace) sorted() []entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.Clone(t.entries)
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.actor, b.actor), strings.Compare(a.text, b.text))
	})
	return all
}

// String returns the trace, one entry per line.
func (t *Trace) String() string { return format(t.sorted()) }

// Hash returns a hash of the trace. Equal hashes mean equal traces, to the nanosecond.
func (t *Trace) Hash() string {
	h := sha256.New()
	for _, e := range t.sorted() {
		_, _ = fmt.Fprintln(h, int64(e.at), e.actor, e.text) // never fails
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

func format(entries []entry) string {
	var text strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&text, "%10.3fs  %-9s  %s\n", e.at.Seconds(), e.actor, e.text)
	}
	return text.String()
}
