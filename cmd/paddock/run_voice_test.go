package main

import (
	"fmt"
	"strings"
	"testing"
)

// An ear takes one line each time that it is told to.
type ear struct {
	next  chan struct{}
	lines []string
}

func (e *ear) Write(b []byte) (int, error) {
	<-e.next
	e.lines = append(e.lines, string(b))
	return len(b), nil
}

func TestWhoSpeaksDoesNotWaitUntilSomebodyHears(t *testing.T) {
	t.Parallel()
	e := &ear{next: make(chan struct{})}
	v := newVoice(e)
	const said = 2 * unsaid
	for i := range said {
		v.say("%d\x1b", i)
	}
	close(e.next)
	v.finish()
	if n := len(e.lines); n < unsaid || n > unsaid+1 {
		t.Errorf("of %d lines %d were remembered, want %d and the one that was being written", said, n, unsaid)
	}
	for i, line := range e.lines[:min(len(e.lines), unsaid)] { // the one beyond came when there was room again
		if want := fmt.Sprintf("paddock: %d\\x1b\n", i); !strings.HasPrefix(line, want) {
			t.Errorf("line %d is %q, want %q", i, line, want)
		}
	}
	v.say("too late")
}
