package supervise

import (
	"fmt"
	"strings"
	"testing"
)

// A slowWriter blocks each write until it may go on.
type slowWriter struct {
	next  chan struct{}
	lines []string
}

func (w *slowWriter) Write(b []byte) (int, error) {
	<-w.next
	w.lines = append(w.lines, string(b))
	return len(b), nil
}

func TestPrintfDoesNotWaitForTheWriter(t *testing.T) {
	t.Parallel()
	w := &slowWriter{next: make(chan struct{})}
	s := NewAsyncStderr(w)
	const printed = 2 * maxPending
	for i := range printed {
		s.Printf("%d\x1b", i)
	}
	close(w.next)
	s.Close()
	if n := len(w.lines); n < maxPending || n > maxPending+1 {
		t.Errorf("%d of %d lines were written, want %d and the one that was being written", n, printed, maxPending)
	}
	for i, line := range w.lines[:min(len(w.lines), maxPending)] { // one more may have found room when a line was taken out
		if want := fmt.Sprintf("paddock: %d\\x1b\n", i); !strings.HasPrefix(line, want) {
			t.Errorf("line %d is %q, want %q", i, line, want)
		}
	}
	s.Printf("too late")
}
