package store

import (
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
)

// decided is the outcome of a decision made now that leaves the name due in d, or
// never if d is zero.
func decided(name string, now time.Time, d time.Duration) outcome {
	o := outcome{Decision: lock.Decision{Now: now, Locks: []lock.Record{{Name: name}}}, began: now}
	if d > 0 {
		o.Due = now.Add(d)
	}
	return o
}

func TestTheSweepKnowsEndsInOrder(t *testing.T) {
	t.Parallel()
	w, now := newSweep(), time.Now()
	w.note([]outcome{
		decided("late", now, time.Hour), decided("soon", now, 2*time.Second),
		decided("sooner", now, time.Second+1), decided("released", now, 2*time.Second),
	})
	w.note([]outcome{decided("released", now, 0)})
	w.note([]outcome{decided("sooner", now, 3*time.Second)}) // renewed
	w.hear("heard", now.Add(2500*time.Millisecond))
	w.hear("late", now) // known better

	names, next := w.due(now.Add(time.Second))
	if len(names) != 0 || next != time.Second {
		t.Errorf("due %v, the next in %v", names, next)
	}
	names, next = w.due(now.Add(3 * time.Second))
	if want := []string{"soon", "heard", "sooner"}; !slices.Equal(names, want) || next != time.Hour-3*time.Second {
		t.Errorf("due %v, the next in %v; want %v", names, next, want)
	}
	w.hear("soon", now)
	if names, _ := w.due(now.Add(3 * time.Second)); len(names) != 0 {
		t.Errorf("due again, while it is being seen to: %v", names)
	}
	w.seenTo("soon")
	w.hear("soon", now)
	if names, _ := w.due(now.Add(3 * time.Second)); len(names) != 1 {
		t.Errorf("due after all: %v", names)
	}
}

// TestAnEndThatComesWhileTheNameIsSeenToIsNotLost: an end that was acted on a
// moment early is noted anew, and may come before the first is through.
func TestAnEndThatComesWhileTheNameIsSeenToIsNotLost(t *testing.T) {
	t.Parallel()
	w, now := newSweep(), time.Now()
	w.note([]outcome{decided("a", now, time.Second)})
	if names, _ := w.due(now.Add(time.Second)); len(names) != 1 {
		t.Fatalf("due %v", names)
	}
	w.note([]outcome{decided("a", now, time.Second+time.Millisecond)})
	if names, _ := w.due(now.Add(2 * time.Second)); len(names) != 0 {
		t.Fatalf("due %v, while it is being seen to", names)
	}
	w.seenTo("a")
	if names, _ := w.due(time.Now()); len(names) != 1 {
		t.Errorf("due %v, want a once more", names)
	}
}

func TestADatabaseClockThatIsOffMovesNoEnd(t *testing.T) {
	t.Parallel()
	w, here := newSweep(), time.Now()
	o := decided("a", here.Add(-time.Hour), 10*time.Second)
	o.began = here
	w.note([]outcome{o})
	if _, next := w.due(here); next != 10*time.Second {
		t.Errorf("the next in %v, want 10 s", next)
	}
}

// TestAStoreNotesWhatItGrants, so that an end is acted on when it comes and not
// when the census finds it.
func TestAStoreNotesWhatItGrants(t *testing.T) {
	t.Parallel()
	o, err := Options{}.resolve()
	if err != nil {
		t.Fatal(err)
	}
	s, err := connect(t.Context(), pgtest.URL(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	g, err := s.Acquire(t.Context(), lock.Acquire{Name: "a", Holder: "h", TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	if at := s.sweep.byName["a"]; at == nil || at.at.Before(g.Until) {
		t.Errorf("noted %+v, want the lease's end, %v", at, g.Until)
	}
	if err := s.Release(t.Context(), lock.Release{Name: "a", LeaseID: g.ID}); err != nil {
		t.Fatal(err)
	}
	if at := s.sweep.byName["a"]; at != nil {
		t.Errorf("still noted %+v", at)
	}
}
