package main

import "testing"

func TestThreadsFollowTheLoad(t *testing.T) {
	t.Parallel()
	var n threads
	for i, step := range []struct {
		share  float64
		single bool
	}{
		{0.1, false}, {0.1, false}, {0.1, false}, {0.1, false}, {0.1, true}, // idle for long enough
		{0.45, true},                // between the limits it stays
		{0.51, false},               // busy
		{0.3, false}, {0.45, false}, // not idle in a row
		{0.1, false}, {0.1, false}, {0.1, false}, {0.1, false}, {0.1, true},
		{1.0, false}, // one thread is all that it could use
	} {
		if got := n.next(step.share); got != step.single {
			t.Errorf("step %d: after %v of a core, one thread is %t, want %t", i, step.share, got, step.single)
		}
	}
}

func TestTheProcessTimeGrows(t *testing.T) {
	t.Parallel()
	before := processTime()
	for processTime() == before { // ends when this loop itself has used some
	}
	if processTime() < before {
		t.Error("the time of the process runs backwards")
	}
}
