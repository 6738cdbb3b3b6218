package lock_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

func TestACycleKeepsItsSteps(t *testing.T) {
	t.Parallel()
	steps := []lock.DeadlockStep{{Name: "a", Holder: `h "1" & <b>`, WaitsFor: "h2\u202e"}, {Name: "b:c", Holder: "", WaitsFor: "\x00", At: "b", Ahead: true}}
	c := lock.CycleOf(steps)
	if got := c.Steps(); !slices.Equal(got, steps) {
		t.Errorf("the steps are %+v, want %+v", got, steps)
	}
	if again := lock.CycleOf(slices.Clone(steps)); again != c {
		t.Errorf("%q and %q differ", again, c)
	}
	for _, bad := range []lock.Cycle{"", "{", `["a"]`, `["a","b","c",1]`, `{"a":1}`} {
		if got := bad.Steps(); len(got) != 0 {
			t.Errorf("%q has the steps %+v", bad, got)
		}
	}
}

func TestACycleHasAtMostMaxCycleSteps(t *testing.T) {
	t.Parallel()
	var steps []lock.DeadlockStep
	for i := range lock.MaxCycleSteps {
		steps = append(steps, lock.DeadlockStep{Name: fmt.Sprint("n", i), Holder: "h", WaitsFor: "h"})
	}
	if got := lock.CycleOf(steps).Steps(); !slices.Equal(got, steps) {
		t.Errorf("of %d steps, %d are kept", len(steps), len(got))
	}
	if c := lock.CycleOf(append(steps, steps[0])); c != "" {
		t.Errorf("a longer circle is kept: %s", c)
	}
}

// TestTheVictimsEventHasTheCircle, at each of the locks that it waited for.
func TestTheVictimsEventHasTheCircle(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "t exclusive a", "u exclusive b", "t exclusive b,c", "u exclusive a,c")
	d := lock.FindDeadlocks(s.records(), s.now, 1)[0]
	out := s.do(lock.BreakDeadlock{Locks: d.Locks, LeaseID: d.Victim, Attachment: d.Attachment})
	var events []lock.Event
	for _, e := range out.Events {
		if e.Kind == lock.Dequeued {
			events = append(events, e)
		}
	}
	if len(events) != 2 {
		t.Fatalf("the events are %+v", out.Events)
	}
	for _, e := range events {
		if e.Reason != "deadlock" || !slices.Equal(e.Cycle.Steps(), d.Cycle) {
			t.Errorf("the event is %+v, want the circle %+v", e, d.Cycle)
		}
	}
	want := `deadlock: "h4" waits for a, and "h1" holds it; "h3" waits for b, and "h2" holds it`
	if got := events[0].Explanation(); got != want {
		t.Errorf("it is explained by %s, want %s", got, want)
	}
}
