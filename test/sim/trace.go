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

// A Trace is what happened in a run.
type Trace struct {
	start time.Time

	mu      sync.Mutex
	entries []entry
}

// An entry is one thing that happened.
type entry struct {
	at     time.Duration
	who    string // did it, or suffered it
	text   string
	detail bool // it is of messages, not of what workers and servers do
}

func newTrace() *Trace { return &Trace{start: time.Now()} }

// now returns how long the run has lasted.
func (t *Trace) now() time.Duration { return time.Since(t.start) }

func (t *Trace) note(who, format string, args ...any) {
	t.add(entry{who: who, text: fmt.Sprintf(format, args...)})
}

func (t *Trace) detail(who, format string, args ...any) {
	t.add(entry{who: who, text: fmt.Sprintf(format, args...), detail: true})
}

func (t *Trace) add(e entry) {
	e.at = t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = append(t.entries, e)
}

// sorted returns the entries in an order that does not depend on which of two
// goroutines came first at one instant.
func (t *Trace) sorted() []entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := slices.Clone(t.entries)
	slices.SortFunc(all, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.who, b.who), strings.Compare(a.text, b.text))
	})
	return all
}

// String returns the whole trace, a line an entry.
func (t *Trace) String() string { return format(t.sorted()) }

// Hash returns what two traces have in common if nothing in them differs, down to the
// nanosecond.
func (t *Trace) Hash() string {
	h := sha256.New()
	for _, e := range t.sorted() {
		_, _ = fmt.Fprintln(h, int64(e.at), e.who, e.text) // a hash takes everything
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

func format(entries []entry) string {
	var text strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&text, "%10.3fs  %-9s  %s\n", e.at.Seconds(), e.who, e.text)
	}
	return text.String()
}
