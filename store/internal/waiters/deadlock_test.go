package waiters

import (
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// TestOnlyLongWaitsAreSuspicious, of calls with a task: nothing is read for the others, which are no victims.
func TestOnlyLongWaitsAreSuspicious(t *testing.T) {
	t.Parallel()
	began := time.Now()
	r := &Registry{calls: make(map[lock.Attachment]*waitingCall)}
	add := func(n lock.Attachment, place int64, c *waitingCall) {
		c.attachment = n
		c.joinAt(place, began)
		r.calls[n] = c
	}
	add(1, 1, &waitingCall{locks: []string{"without a task"}})
	add(2, 2, &waitingCall{locks: []string{"with a task"}, hasTask: true})
	add(3, 0, &waitingCall{locks: []string{"not in a queue"}, hasTask: true})
	add(4, 4, &waitingCall{locks: []string{"one", "two"}})
	add(5, 5, &waitingCall{locks: []string{"three", "four"}, hasTask: true, began: began.Add(time.Hour)}) // the call is a later one
	if names := r.suspects(began.Add(-time.Nanosecond)); len(names) != 0 {
		t.Errorf("at first %q are suspicious", names)
	}
	names := r.suspects(began)
	if slices.Sort(names); !slices.Equal(names, []string{"four", "three", "with a task"}) {
		t.Errorf("then %q are suspicious", names)
	}
}

// TestSlowSearchesDelayOthersForASecondAtMost, and a single one not at all.
func TestSlowSearchesDelayOthersForASecondAtMost(t *testing.T) {
	t.Parallel()
	for took, want := range map[[2]time.Duration]time.Duration{
		{0, time.Minute}:                                 searchInterval,
		{time.Millisecond, time.Second}:                  searchInterval,
		{time.Second, time.Millisecond}:                  searchInterval,
		{40 * time.Millisecond, time.Second}:             800 * time.Millisecond,
		{300 * time.Millisecond, 200 * time.Millisecond}: maxSearchRest,
	} {
		if got := restAfter(took[0], took[1]); got != want {
			t.Errorf("after searches of %v, the rest is %v, want %v", took, got, want)
		}
	}
}

// TestOnlyLocksInACircleAreRead: by the pairs of locks of which the first is held by a task that waits at the second.
func TestOnlyLocksInACircleAreRead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pairs []string // of one letter each
		want  []string
	}{
		"none":                         {nil, nil},
		"a chain":                      {[]string{"ab", "bc", "cd"}, nil},
		"a circle":                     {[]string{"ab", "bc", "ca"}, []string{"a", "b", "c"}},
		"one that waits for itself":    {[]string{"aa", "ab"}, []string{"a"}},
		"what leads to a circle":       {[]string{"xa", "ab", "ba"}, []string{"a", "b"}},
		"what a circle leads to":       {[]string{"ab", "ba", "bx", "xy"}, []string{"a", "b"}},
		"between two circles":          {[]string{"ab", "ba", "bx", "xc", "cd", "dc"}, []string{"a", "b", "c", "d", "x"}},
		"two circles without a bridge": {[]string{"ab", "ba", "cd", "dc", "ce"}, []string{"a", "b", "c", "d"}},
	} {
		next := make(map[string]map[string]bool)
		for _, p := range c.pairs {
			if next[p[:1]] == nil {
				next[p[:1]] = make(map[string]bool)
			}
			next[p[:1]][p[1:]] = true
		}
		if got := inCircles(next); !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
			t.Errorf("%s: %q are read, want %q", name, got, c.want)
		}
	}
}
