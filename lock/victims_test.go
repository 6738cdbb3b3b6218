package lock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

// upgrades returns the calls of n tasks that each hold the lock a and wait for b, exclusively, and of as many that do
// so the other way round. The tasks join the queues in turns.
func upgrades(n, m int) (calls []string) {
	for i := range max(n, m) {
		if i < n {
			calls = append(calls, fmt.Sprintf("t%d shared a", i))
		}
		if i < m {
			calls = append(calls, fmt.Sprintf("u%d shared b", i))
		}
	}
	for i := range max(n, m) {
		if i < n {
			calls = append(calls, fmt.Sprintf("t%d exclusive b", i))
		}
		if i < m {
			calls = append(calls, fmt.Sprintf("u%d exclusive a", i))
		}
	}
	return calls
}

// TestOneLookTellsTheFewestVictims: the tasks of one side are enough, and no fewer: each task of one side waits for all
// of the other side. The others are granted their locks one after the other.
func TestOneLookTellsTheFewestVictims(t *testing.T) {
	t.Parallel()
	for _, sides := range [][2]int{{1, 1}, {2, 3}, {10, 10}, {10, 3}, {30, 30}, {3, 60}} {
		t.Run(fmt.Sprint(sides), func(t *testing.T) {
			t.Parallel()
			n, m := sides[0], sides[1]
			s := newDeadlockScene(t, upgrades(n, m)...)
			began := time.Now()
			found := lock.FindDeadlocks(s.records(), s.now, 1)
			t.Log(time.Since(began))
			if len(found) != min(n, m) {
				t.Fatalf("%d calls give way, want %d", len(found), min(n, m))
			}
			at := found[0].Cycle[0].Name
			s.breakTogether(found, func(d lock.Deadlock) {
				if d.Cycle[0].Name != at {
					t.Errorf("one waits for %s, another one for %s", at, d.Cycle[0].Name)
				}
			})
			if went := s.finish(); went != n+m-min(n, m) {
				t.Errorf("%d others are granted their locks, want %d", went, n+m-min(n, m))
			}
		})
	}
}

// breakTogether breaks the deadlocks of one look one after the other: the choice of the others stays the same. Each
// victim releases what its task holds.
func (s *deadlockScene) breakTogether(found []lock.Deadlock, check func(lock.Deadlock)) {
	s.t.Helper()
	for _, d := range found {
		check(d)
		out := s.do(lock.BreakDeadlock{Locks: d.Locks, LeaseID: d.Victim, Attachment: d.Attachment})
		if !errors.Is(out.Err, lock.ErrDeadlock) {
			s.t.Fatalf("the victim of %+v is answered with %v", d.Cycle, out.Err)
		}
	}
	for _, d := range found {
		s.releaseAll(s.calls[slices.IndexFunc(s.calls, func(a lock.Acquire) bool { return a.LeaseID == d.Victim })].Task)
	}
}

// releaseAll releases the leases of the task, and of all of its parts.
func (s *deadlockScene) releaseAll(task lock.TaskID) {
	for _, r := range s.records() {
		for _, l := range r.Leases {
			if task.Includes(l.Task) && l.Set == nil {
				s.do(lock.Release{Locks: []string{l.Name}, LeaseID: l.ID})
			}
		}
	}
}

// finish releases what each task holds whose wait has ended, until no call waits, and returns how many were granted
// their locks.
func (s *deadlockScene) finish() (granted int) {
	s.t.Helper()
	for {
		before := granted
		for _, a := range s.calls {
			for _, r := range s.records() {
				l := slices.IndexFunc(r.Leases, func(l lock.Lease) bool { return l.ID == a.LeaseID && l.Place > 0 })
				if l >= 0 {
					granted++
					s.releaseAll(a.Task)
				}
			}
		}
		if granted == before {
			break
		}
	}
	for _, r := range s.records() {
		if len(r.Queue) > 0 {
			s.t.Errorf("%d calls wait for %s still", len(r.Queue), r.Name)
		}
	}
	return granted
}

// TestVictimsOfSeveralLocks: two circles that share only a call that is ahead, without a task, and so is no victim.
func TestVictimsOfSeveralLocks(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "t exclusive a", "u exclusive c", "- exclusive a,b,c,d", "t exclusive b", "u exclusive d")
	found := lock.FindDeadlocks(s.records(), s.now, 1)
	if len(found) != 2 {
		t.Fatalf("found %+v", found)
	}
	s.breakTogether(found, func(d lock.Deadlock) {
		if d.Victim == s.calls[2].LeaseID {
			t.Error("the call without a task gives way")
		}
	})
	set := []string{"a", "b", "c", "d"}
	s.do(lock.Sweep{Locks: set})
	for _, name := range set {
		if r := s.locks[name]; len(r.Leases) != 1 || r.Leases[0].ID != s.calls[2].LeaseID {
			t.Errorf("the set has not got %s: %+v", name, r)
		}
	}
}

// TestALargeCircleIsBrokenInParts: of more than maxSearched calls, those of one lock give way, maxVictims at a time.
func TestALargeCircleIsBrokenInParts(t *testing.T) {
	t.Parallel()
	n := lock.MaxSearched + 10
	s := newDeadlockScene(t, upgrades(n, n)...)
	victims := 0
	for range 2 {
		found := lock.FindDeadlocks(s.records(), s.now, 1)
		victims += len(found)
		s.breakTogether(found, func(lock.Deadlock) {})
	}
	if victims != n {
		t.Errorf("in two looks %d calls give way, want %d", victims, n)
	}
	if went := s.finish(); went != n {
		t.Errorf("%d others are granted their locks, want %d", went, n)
	}
}

// TestOneLookBreaksAllCircles of random calls, and each of its victims has a task.
func TestOneLookBreaksAllCircles(t *testing.T) {
	t.Parallel()
	broken := 0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 41))
		s := newDeadlockScene(t)
		pick := func(from string) string { return string(from[random.IntN(len(from))]) }
		for range 14 + random.IntN(20) {
			mode := []string{"exclusive", "shared", "permit"}[random.IntN(3)]
			names := pick("abcdef")
			if mode == "permit" {
				names = pick("xy")
				mode = fmt.Sprintf("permit:%d/3", 1+random.IntN(3))
			} else if other := pick("abcdef"); random.IntN(4) == 0 && other != names {
				names += "," + other
			}
			s.call(fmt.Sprintf("%s %s %s", []string{"-", "t", "t.1", "t.2", "u", "v", "v.1", "w"}[random.IntN(8)], mode, names))
		}
		locks := s.records()
		found := lock.FindDeadlocks(locks, s.now, 1)
		broken += min(len(found), 1)
		for _, d := range found {
			if w := s.calls[slices.IndexFunc(s.calls, func(a lock.Acquire) bool { return a.LeaseID == d.Victim })]; w.Task == "" {
				t.Fatalf("seed %d: a call without a task gives way: %+v", seed, d)
			}
		}
		for i := range locks { // without granting anything to the others
			locks[i].Queue = slices.DeleteFunc(slices.Clone(locks[i].Queue), func(w *lock.Waiter) bool {
				return slices.ContainsFunc(found, func(d lock.Deadlock) bool { return d.Victim == w.Lease.ID })
			})
		}
		if left := lock.FindDeadlocks(locks, s.now, 1); len(left) > 0 {
			t.Errorf("seed %d: of %+v, there is left %+v", seed, found, left)
		}
		refused := 0 // of permits, one circle may be seen only where the locks of another one are
		for _, d := range found {
			out := s.do(lock.BreakDeadlock{Locks: d.Locks, LeaseID: d.Victim, Attachment: d.Attachment})
			if errors.Is(out.Err, lock.ErrDeadlock) {
				refused++
			}
		}
		if len(found) > 0 && refused == 0 {
			t.Errorf("seed %d: no command breaks any of %+v", seed, found)
		}
	}
	if broken < 50 {
		t.Error("there were hardly any circles")
	}
}

// TestAResumedCallIsOfItsOwnTask, whatever the task of the call that took the place was.
func TestAResumedCallIsOfItsOwnTask(t *testing.T) {
	t.Parallel()
	s := newDeadlockScene(t, "t exclusive a", "u exclusive b", "t exclusive b", "- exclusive a")
	if found := lock.FindDeadlocks(s.records(), s.now, 1); len(found) > 0 {
		t.Fatalf("found %+v", found)
	}
	again := s.calls[3]
	again.Task, again.Attachment = "u", 99
	if d := s.do(again); d.Err != nil || !d.Queued {
		t.Fatalf("it is answered with %v", d.Err)
	}
	if found := lock.FindDeadlocks(s.records(), s.now, 1); len(found) != 1 || found[0].Attachment != 99 {
		t.Errorf("found %+v", found)
	}
}
