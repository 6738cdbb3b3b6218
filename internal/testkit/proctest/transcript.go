package proctest

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience is how long a test waits for what normally takes milliseconds.
const Patience = time.Minute

// A Transcript collects output, of a process or a log, and can be read while it grows. A test can wait for a part of it.
// The zero Transcript is empty.
type Transcript struct {
	mu    sync.Mutex
	text  []byte
	grown chan struct{} // closed by the next Write; nil if no test waits
}

func (t *Transcript) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	if t.grown != nil {
		close(t.grown)
		t.grown = nil
	}
	return len(b), nil
}

func (t *Transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}

// Clear empties the transcript.
func (t *Transcript) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = nil
}

// Count returns how often the words occur.
func (t *Transcript) Count(words string) int { return strings.Count(t.String(), words) }

func (t *Transcript) now() (string, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.grown == nil {
		t.grown = make(chan struct{})
	}
	return string(t.text), t.grown
}

// Await waits until the pattern matches, for at most Patience, and returns its first group.
func (t *Transcript) Await(tb testing.TB, pattern string) string {
	tb.Helper()
	enough := time.After(Patience)
	for re := regexp.MustCompile(pattern); ; {
		text, grown := t.now()
		if match := re.FindStringSubmatch(text); match != nil {
			return match[1]
		}
		select {
		case <-grown:
		case <-enough:
			tb.Fatalf("timed out waiting for %s in:\n%s", pattern, text)
		}
	}
}
