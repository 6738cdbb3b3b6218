package lock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// TestADeadlockOfMoreThanMaxDeadlockLocksLasts: its command would need too many locks.
func TestADeadlockOfMoreThanMaxDeadlockLocksLasts(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{lock.MaxDeadlockLocks: 1, lock.MaxDeadlockLocks + 1: 0} {
		var calls []string
		for i := range n {
			calls = append(calls, fmt.Sprintf("t%d exclusive n%d", i, i))
		}
		for i := range n {
			calls = append(calls, fmt.Sprintf("t%d exclusive n%d", i, (i+1)%n))
		}
		s := newDeadlockScene(t, calls...)
		found := lock.FindDeadlocks(s.records(), s.now, 1)
		if len(found) != want {
			t.Fatalf("of %d locks, %d deadlocks are found, want %d", n, len(found), want)
		}
		if want == 0 {
			continue
		}
		d := found[0]
		if last := s.calls[len(s.calls)-1]; len(d.Locks) != n || len(d.Cycle) != n || d.Victim != last.LeaseID {
			t.Errorf("found %d locks and %d steps", len(d.Locks), len(d.Cycle))
		}
		s.breaks(d)
	}
}

// twoRings returns the calls of two rings with that many waits together, which meet in a call that is older than these:
// it waits for the first locks of both. If it gives way, both are broken, and by no other call.
func twoRings(waits int) (calls []string) {
	ring := [...]int{waits / 2, waits - waits/2}
	calls = []string{"x exclusive a"}
	for r, n := range ring {
		for i := range n {
			calls = append(calls, fmt.Sprintf("t%d-%d exclusive n%d-%d", r, i, r, i))
		}
	}
	calls = append(calls, "x exclusive n0-0,n1-0")
	for r, n := range ring {
		for i := range n {
			next := fmt.Sprintf("n%d-%d", r, i+1)
			if i == n-1 {
				next = "a"
			}
			calls = append(calls, fmt.Sprintf("t%d-%d exclusive %s", r, i, next))
		}
	}
	return calls
}

// TestTheVictimsOfALargeCircleAreNotSearchedFor: of more than maxSearched calls. The youngest one gives way, and what
// is left is a deadlock of its own.
func TestTheVictimsOfALargeCircleAreNotSearchedFor(t *testing.T) {
	t.Parallel()
	for calls, want := range map[int][]string{
		lock.MaxSearched:     {fmt.Sprint("h", lock.MaxSearched+1)}, // the call that waits for both rings
		lock.MaxSearched + 1: {fmt.Sprint("h", 2*(lock.MaxSearched+1)), fmt.Sprint("h", 2+3*lock.MaxSearched/2)},
	} {
		s := newDeadlockScene(t, twoRings(calls-1)...)
		if got := s.breakAll(); !slices.Equal(got, want) {
			t.Errorf("of %d calls, %q give way, want %q", calls, got, want)
		}
	}
}

// TestAVictimReceivesAllLocksOfItsCircle, since another call may be the victim of a part of these. If they are too
// many, the youngest call gives way instead.
func TestAVictimReceivesAllLocksOfItsCircle(t *testing.T) {
	t.Parallel()
	const waiting = 16 // calls of the circle
	calls := twoRings(waiting - 1)
	for _, extra := range []int{0, lock.MaxSetSize - 1} { // locks that each call of the rings waits for as well
		all := slices.Clone(calls)
		for i := waiting + 1; i < len(all) && extra > 0; i++ {
			for n := range extra {
				all[i] += fmt.Sprintf(",x%d-%d", i, n)
			}
		}
		want := []string{fmt.Sprint("h", waiting+1)}
		if extra > 0 {
			want = []string{fmt.Sprint("h", 2*waiting), fmt.Sprint("h", 1+3*waiting/2-1)}
		}
		if got := newDeadlockScene(t, all...).breakAll(); !slices.Equal(got, want) {
			t.Errorf("with %d more locks, %q give way, want %q", extra, got, want)
		}
	}
}

// breakAll breaks one deadlock after the other, and returns the holders of the victims.
func (s *deadlockScene) breakAll() (victims []string) {
	s.t.Helper()
	for {
		found := lock.FindDeadlocks(s.records(), s.now, 1)
		if len(found) == 0 {
			return victims
		}
		d := found[0]
		out := s.do(lock.BreakDeadlock{Locks: d.Locks, LeaseID: d.Victim, Attachment: d.Attachment})
		if !errors.Is(out.Err, lock.ErrDeadlock) {
			s.t.Fatalf("the victim of %+v is answered with %v", d.Cycle, out.Err)
		}
		victims = append(victims, d.Cycle[0].Holder)
	}
}
