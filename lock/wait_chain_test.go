package lock_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// waitChains gives the calls of a deadlockScene, and the chain of the first waiter of the lock "a" with its end; empty
// if there is none.
var waitChains = map[string]struct {
	calls []string
	want  string
}{
	"nothing waits":                  {[]string{"t exclusive a", "u exclusive b", "t exclusive b"}, ""},
	"held without a task":            {[]string{"- exclusive a", "t exclusive a"}, "h2 a h1: unknown"},
	"held by a task that runs":       {[]string{"t exclusive a", "- exclusive a", "u exclusive a"}, "h2 a h1: not_waiting"},
	"its part waits":                 {[]string{"t exclusive a", "- exclusive b", "t.1 exclusive b", "- exclusive a"}, "h4 a h1, h3 b h2: unknown"},
	"another task begins alike":      {[]string{"t exclusive a", "- exclusive b", "t1 exclusive b", "- exclusive a"}, "h4 a h1: not_waiting"},
	"three locks":                    {[]string{"t exclusive a", "u exclusive b", "v exclusive c", "t exclusive b", "u exclusive c", "- exclusive a"}, "h6 a h1, h4 b h2, h5 c h3: not_waiting"},
	"a circle":                       {[]string{"t exclusive a", "u exclusive b", "t exclusive b", "u exclusive a"}, "h4 a h1, h3 b h2: circle"},
	"what leads to a circle":         {[]string{"v exclusive a", "t exclusive b", "u exclusive c", "v exclusive b", "t exclusive c", "u exclusive b", "- exclusive a"}, "h7 a h1, h4 b h2, h5 c h3, h6 b h2: circle"},
	"a waiter is ahead":              {[]string{"t exclusive a", "- shared b", "v exclusive b", "t shared b", "- exclusive a"}, "h5 a h1, h4 b h3>, h3 b h2: unknown"},
	"one of two readers waits":       {[]string{"t shared a", "u shared a", "- exclusive b", "u exclusive b", "- exclusive a"}, "h5 a h2, h4 b h3: unknown"},
	"one of two permits waits":       {[]string{"t permit a", "u permit a", "- exclusive b", "t exclusive b", "- permit a"}, "h5 a h2: not_waiting"},
	"both permits wait":              {[]string{"t permit a", "u permit a", "- exclusive b", "t exclusive b", "u exclusive b", "- permit a"}, "h6 a h1, h4 b h3: unknown"},
	"enough permits of another task": {[]string{"t permit:1/3 a", "u permit:2/3 a", "- exclusive b", "t exclusive b", "- permit:2/3 a"}, "h5 a h2: not_waiting"},
	"too few permits of others":      {[]string{"t permit:2/3 a", "u permit:1/3 a", "- exclusive b", "t exclusive b", "- permit:2/3 a"}, "h5 a h1, h4 b h3: unknown"},
	"a set with one lock held":       {[]string{"t exclusive a", "- exclusive c", "t exclusive b,c", "- exclusive a"}, "h4 a h1, h3 c h2: unknown"},
	"a set waits for other locks":    {[]string{"t exclusive c", "u exclusive a,c"}, "h2 c h1: not_waiting"},
	"the oldest wait of a task":      {[]string{"t exclusive a", "- exclusive b", "- exclusive c", "t.2 exclusive c", "t.1 exclusive b", "- exclusive a"}, "h6 a h1, h4 c h3: unknown"},
}

func TestWaitChains(t *testing.T) {
	t.Parallel()
	for name, c := range waitChains {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := newDeadlockScene(t, c.calls...).chainOf("a", true); got != c.want {
				t.Errorf("the chain is %q, want %q", got, c.want)
			}
		})
	}
}

// chainOf describes the chain of the first waiter of the lock.
func (s *deadlockScene) chainOf(name string, complete bool) string {
	locks := s.records()
	i := slices.IndexFunc(locks, func(r lock.Record) bool { return r.Name == name })
	locks[0], locks[i] = locks[i], locks[0]
	chain := lock.WaitChainOf(locks, s.now, 1, complete)
	if chain == nil {
		return ""
	}
	return stepsText(chain.Steps) + ": " + string(chain.End)
}

// stepsText writes each step as the call's holder, the lock, and the holder in the way, with ">" after one ahead.
func stepsText(steps []lock.DeadlockStep) string {
	var all []string
	for _, one := range steps {
		ahead := ""
		if one.Ahead {
			ahead = ">"
		}
		all = append(all, one.Holder+" "+one.Name+" "+one.WaitsFor+ahead)
	}
	return strings.Join(all, ", ")
}

// TestAWaitChainHasALimit: MaxChainSteps, of which the last is shown as the last only if it is.
func TestAWaitChainHasALimit(t *testing.T) {
	t.Parallel()
	for steps, want := range map[int]lock.ChainEnd{
		lock.MaxChainSteps: lock.ChainNotWaiting, lock.MaxChainSteps + 1: lock.ChainLimit, 3 * lock.MaxChainSteps: lock.ChainLimit,
	} {
		name := func(i int) string { return fmt.Sprintf("n%02d", i) }
		calls := []string{"t0 exclusive " + name(0), "- exclusive " + name(0)}
		for i := 1; i < steps; i++ {
			calls = append(calls, fmt.Sprintf("t%d exclusive %s", i, name(i)), fmt.Sprintf("t%d exclusive %s", i-1, name(i)))
		}
		got := newDeadlockScene(t, calls...).chainOf(name(0), true)
		if n := strings.Count(got, ",") + 1; n != min(steps, lock.MaxChainSteps) || !strings.HasSuffix(got, ": "+string(want)) {
			t.Errorf("of %d steps, %d are shown: %s", steps, n, got)
		}
	}
}

// TestAWaitChainOfSomeLocksIsNotTakenForWhole: a task may wait at a lock that was not read.
func TestAWaitChainOfSomeLocksIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	for text, calls := range map[string][]string{
		"h2 a h1: limit":           {"t exclusive a", "- exclusive a"},
		"h2 a h1: unknown":         {"- exclusive a", "- exclusive a"},
		"h4 a h1, h3 b h2: circle": {"t exclusive a", "u exclusive b", "t exclusive b", "u exclusive a"},
	} {
		if got := newDeadlockScene(t, calls...).chainOf("a", false); got != text {
			t.Errorf("the chain is %q, want %q", got, text)
		}
	}
}

// TestAWaitChainInATreeSaysAtWhichLock what is in the way is, above or below the lock that is waited for.
func TestAWaitChainInATreeSaysAtWhichLock(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("builder", 0, exclusiveLock("repo:src:a"))
	w.acquireIn("cleanup", time.Minute/2, exclusiveLock("repo"))
	w.acquireIn("other", time.Minute/2, exclusiveLock("repo:src:c"))
	w.acquireIn("last", time.Minute/2, exclusiveLock("repo:src"))
	first := func(name string) (said []string) {
		locks := []lock.Record{w.record(name)}
		for _, other := range []string{"repo", "repo:src", "repo:src:a", "repo:src:c"} {
			if other != name {
				locks = append(locks, w.record(other))
			}
		}
		for _, s := range lock.WaitChainOf(locks, w.now, w.self, true).Steps {
			said = append(said, s.Name+": "+s.Obstacle())
		}
		return said
	}
	const held, ahead = `repo: "builder" holds repo:src:a, below it`, `repo:src:c: "cleanup" waits for repo, above it, and is ahead`
	for name, want := range map[string][]string{"repo": {held}, "repo:src:c": {ahead, held}, "repo:src": {ahead, held}} {
		if got := first(name); !slices.Equal(got, want) {
			t.Errorf("the chain of %s is %q, want %q", name, got, want)
		}
	}
}
