package lock_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-lock/paddock/lock"
)

// blockedAs is what the queue of a lock shows of its first waiter.
type blockedAs struct {
	By     lock.Blocker
	At     string
	Ahead  int
	Leases int
}

// TestWaiterSaysWhatBlocksIt: the same waiter, in the queues of all locks that it waits for.
func TestWaiterSaysWhatBlocksIt(t *testing.T) {
	t.Parallel()
	deep := []lock.Member{exclusiveLock("repo:a:b:c")}
	set := []lock.Member{exclusiveLock("x"), exclusiveLock("y")}
	holders := func(at string) blockedAs { return blockedAs{lock.BlockedByHolders, at, 0, 1} }
	closed := func(at string) blockedAs { return blockedAs{By: lock.BlockedByClosure, At: at} }
	for what, c := range map[string]struct {
		before [][]lock.Member // what others hold, or wait for
		asked  []lock.Member
		frozen lock.Scope
		paused bool
		want   map[string]blockedAs
	}{
		"a lease above": {
			before: [][]lock.Member{{exclusiveLock("repo:a")}}, asked: deep,
			want: map[string]blockedAs{"repo": holders("repo:a"), "repo:a": holders(""), "repo:a:b": holders("repo:a"), "repo:a:b:c": holders("repo:a")},
		},
		"a lease below": {
			before: [][]lock.Member{{exclusiveLock("repo:a:b:c")}}, asked: []lock.Member{exclusiveLock("repo:a")},
			want: map[string]blockedAs{"repo": holders("repo:a"), "repo:a": holders("")},
		},
		"a waiter ahead above": {
			before: [][]lock.Member{{exclusiveLock("repo:x")}, {exclusiveLock("repo")}}, asked: deep,
			want: map[string]blockedAs{
				"repo": {lock.BlockedByQueue, "", 1, 0}, "repo:a": {lock.BlockedByQueue, "repo", 1, 0}, "repo:a:b:c": {lock.BlockedByQueue, "repo", 1, 0},
			},
		},
		"a lease of another lock of the set": {
			before: [][]lock.Member{{exclusiveLock("y")}}, asked: set,
			want: map[string]blockedAs{"x": holders("y"), "y": holders("")},
		},
		"a freeze above": {
			asked: deep, frozen: "repo:a",
			want: map[string]blockedAs{"repo": closed("repo:a"), "repo:a": closed(""), "repo:a:b:c": closed("repo:a")},
		},
		"a freeze below": {
			asked: []lock.Member{exclusiveLock("repo:a")}, frozen: "repo:a:b:",
			want: map[string]blockedAs{"repo": closed("repo:a"), "repo:a": closed("")},
		},
		"a freeze of the lock alone": {
			asked: deep, frozen: "repo:a:b:c",
			want: map[string]blockedAs{"repo": closed("repo:a:b:c"), "repo:a:b": closed("repo:a:b:c"), "repo:a:b:c": closed("")},
		},
		"a freeze of another lock of the set": {
			asked: set, frozen: "y",
			want: map[string]blockedAs{"x": closed("y"), "y": closed("")},
		},
		"a lease rather than a freeze elsewhere": {
			before: [][]lock.Member{{exclusiveLock("repo:a:b")}}, asked: deep, frozen: "repo:a",
			want: map[string]blockedAs{"repo": holders("repo:a:b"), "repo:a": closed(""), "repo:a:b": holders("")},
		},
		"a pause": {
			asked: deep, paused: true,
			want: map[string]blockedAs{"repo": {By: lock.BlockedByPause}, "repo:a:b:c": {By: lock.BlockedByPause}},
		},
		"a lease rather than a pause": {
			before: [][]lock.Member{{exclusiveLock("x")}}, asked: []lock.Member{exclusiveLock("x")}, paused: true,
			want: map[string]blockedAs{"x": holders("")},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newTreeWorld(t)
			for i, locks := range c.before {
				w.acquireIn(string(rune('1'+i)), time.Minute/2, locks...)
			}
			if len(c.before) == 0 { // so that it waits
				for _, m := range c.asked {
					w.acquireIn("gate "+m.Name, 0, m)
				}
			}
			if d := w.acquireIn("asked", time.Minute/2, c.asked...); !d.Queued {
				t.Fatalf("it does not wait: %v", d.Err)
			}
			if len(c.before) == 0 {
				w.forgetLeases()
			}
			freezes := map[lock.Scope]lock.Freeze{}
			if c.frozen != "" {
				freezes[c.frozen] = lock.Freeze{Scope: c.frozen}
			}
			in := lock.View{Now: w.now, Self: w.self, Policy: &lock.Policy{Trees: someTrees, Freezes: freezes}}
			if c.paused {
				in.GrantsPausedUntil = w.now.Add(1)
			}
			got := map[string]blockedAs{}
			for name := range c.want {
				in.Locks = nil
				for _, other := range w.record(name).WaitedForToo(w.now, w.self, 64) {
					in.Locks = append(in.Locks, w.record(other))
				}
				all := w.record(name).QueueInfo(in).Waiters
				last := all[len(all)-1]
				got[name] = blockedAs{last.BlockedBy, last.BlockedAt, last.Ahead, len(last.Leases)}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// forgetLeases removes all leases, as a decision that is not made yet would.
func (w *treeWorld) forgetLeases() {
	for name, r := range w.locks {
		r.Leases = nil
		w.locks[name] = r
	}
}

// TestTreeWaiterCountsOnce: at its own lock, at however many levels it waits.
func TestTreeWaiterCountsOnce(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("holder", 0, exclusiveLock("repo"))
	w.acquireIn("deep", time.Minute/2, exclusiveLock("repo:a:b:c:d"))
	w.acquireIn("middle", time.Minute/2, sharedLock("repo:a:b"))
	w.acquireIn("set", time.Minute/2, exclusiveLock("repo:a:x"), exclusiveLock("x"))
	for name, want := range map[string][2]int{
		"repo": {0, 3}, "repo:a": {0, 3}, "repo:a:b": {1, 1}, "repo:a:b:c": {0, 1}, "repo:a:b:c:d": {1, 0}, "repo:a:x": {1, 0}, "x": {1, 0},
	} {
		if l := w.record(name).Lock(w.now); [2]int{l.Waiters, l.WaitersBelow} != want {
			t.Errorf("%s has %d waiters, and %d below; want %v", name, l.Waiters, l.WaitersBelow, want)
		}
	}
}
