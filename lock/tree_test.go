package lock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func members(all ...lock.Member) []lock.Member { return all }

func exclusiveLock(name string) lock.Member { return lock.Member{Name: name, Mode: lock.Exclusive} }

func sharedLock(name string) lock.Member { return lock.Member{Name: name, Mode: lock.Shared} }

func TestAcquireInTree(t *testing.T) {
	t.Parallel()
	trees := lock.Trees{"repo": {}, "org:disks": {}}
	deep := "repo" + strings.Repeat(":x", lock.MaxTreeLevels-1)
	for what, c := range map[string]struct {
		give    []lock.Member
		want    string // the locks that are decided on, or what is wrong
		invalid string // the field
	}{
		"outside":                     {members(exclusiveLock("jobs:a")), "jobs:a exclusive", ""},
		"beside a root":               {members(exclusiveLock("repository:a")), "repository:a exclusive", ""},
		"above a root":                {members(exclusiveLock("org")), "org exclusive", ""},
		"a root":                      {members(exclusiveLock("repo")), "repo exclusive", ""},
		"exclusive":                   {members(exclusiveLock("repo:src:a")), "repo IX, repo:src IX, repo:src:a exclusive", ""},
		"shared":                      {members(sharedLock("repo:src:a")), "repo IS, repo:src IS, repo:src:a shared", ""},
		"a root of two levels":        {members(exclusiveLock("org:disks:1")), "org:disks IX, org:disks:1 exclusive", ""},
		"two branches":                {members(exclusiveLock("repo:a"), sharedLock("repo:b")), "repo IX, repo:a exclusive, repo:b shared", ""},
		"inside and outside":          {members(exclusiveLock("repo:a"), sharedLock("z")), "repo IX, repo:a exclusive, z shared", ""},
		"a lock and its ancestor":     {members(exclusiveLock("repo"), exclusiveLock("repo:a")), "repo exclusive, repo:a exclusive", ""},
		"readers above and below":     {members(sharedLock("repo"), sharedLock("repo:a:b")), "repo shared, repo:a IS, repo:a:b shared", ""},
		"a reader below":              {members(exclusiveLock("repo"), sharedLock("repo:a:b")), "repo exclusive, repo:a IS, repo:a:b shared", ""},
		"a reader above a writer":     {members(sharedLock("repo"), exclusiveLock("repo:a")), "include repo, shared, and an exclusive lock below it", "locks"},
		"empty levels":                {members(exclusiveLock("repo::a")), "repo IX, repo: IX, repo::a exclusive", ""},
		"the deepest":                 {members(exclusiveLock(deep)), "", ""},
		"too deep":                    {members(exclusiveLock(deep + ":x")), "has 9 levels in the tree repo; at most 8", "name"},
		"a permit":                    {members(lock.Member{Name: "repo:a", Mode: lock.Permit, Capacity: 2}), "use exclusive or shared", "mode"},
		"a permit at the root":        {members(lock.Member{Name: "repo", Mode: lock.Permit, Capacity: 2}), "use exclusive or shared", "mode"},
		"a permit of a set in a tree": {members(exclusiveLock("a"), lock.Member{Name: "repo:a", Mode: lock.Permit, Capacity: 2}), "use exclusive", "locks"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a, err := (lock.Acquire{Locks: c.give, Holder: "h"}).Resolve(anyBounds())
			if err != nil {
				t.Fatal(err)
			}
			cmd, err := a.In(&lock.Policy{Trees: trees})
			if c.invalid != "" {
				invalid := new(lock.Error)
				if !errors.As(err, &invalid) || invalid.Code != lock.ErrInvalid || invalid.Field != c.invalid || !strings.Contains(err.Error(), c.want) {
					t.Errorf("refused with %v", err)
				}
				return
			}
			if got := textOf(cmd); err != nil || c.want != "" && got != c.want {
				t.Errorf("decided as %s, %v", got, err)
			}
		})
	}
}

// textOf describes the locks that the call is decided on.
func textOf(cmd lock.Command) string {
	names := map[lock.Mode]string{lock.IntentionShared: "IS", lock.IntentionExclusive: "IX"}
	var texts []string
	for _, m := range cmd.(lock.Acquire).Locks {
		mode := m.Mode.String()
		if m.Mode.IsIntention() {
			mode = names[m.Mode]
		}
		texts = append(texts, m.Name+" "+mode)
	}
	return strings.Join(texts, ", ")
}

func TestTreePathsAreBounded(t *testing.T) {
	t.Parallel()
	trees, a := lock.Trees{}, lock.Acquire{Holder: "h"}
	for i := range lock.MaxSetSize {
		root := fmt.Sprintf("r%d", i)
		trees[root] = struct{}{}
		a.Locks = append(a.Locks, exclusiveLock(root+":x"))
	}
	a, err := a.Resolve(anyBounds())
	if err != nil {
		t.Fatal(err)
	}
	if in, err := a.In(&lock.Policy{Trees: trees}); err != nil || len(in.Names()) != lock.MaxTreePaths {
		t.Errorf("%d locks of trees: %d with their ancestors, %v", len(a.Locks), len(in.Names()), err)
	}
	a.Locks[0].Name += ":y"
	if _, err := a.In(&lock.Policy{Trees: trees}); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("one more was refused with %v", err)
	}
}

// A treeWorld is a tree in which calls are named by their holders.
type treeWorld struct {
	*setModel
	used byte
	ids  map[string]lock.LeaseID
}

func newTreeWorld(t *testing.T) *treeWorld {
	w := &treeWorld{setModel: newSetModel(t), ids: map[string]lock.LeaseID{}}
	w.trees = someTrees
	return w
}

func (w *treeWorld) acquireIn(holder string, wait time.Duration, set ...lock.Member) lock.Decision {
	w.t.Helper()
	w.used++
	w.ids[holder] = id(w.used)
	_, d := w.acquire(lock.Acquire{LeaseID: w.ids[holder], Holder: holder, TTL: 10 * time.Second, Wait: wait, Locks: set})
	return d
}

func (w *treeWorld) releaseIn(holder, name string) {
	w.t.Helper()
	if d := w.do(lock.Release{Locks: []string{name}, LeaseID: w.ids[holder]}); d.Err != nil {
		w.t.Fatalf("%s: %v", holder, d.Err)
	}
}

// holds reports whether the holder has a lease of the lock.
func (w *treeWorld) holds(holder, name string) bool {
	return slices.ContainsFunc(w.record(name).Leases, func(l lock.Lease) bool { return l.Holder == holder && w.now.Before(l.EndsAt()) })
}

func TestRefusalNamesWhatBlocksAboveOrBelow(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		held, asked lock.Member
		blocker     string // empty: granted
		says        string
	}{
		"above":             {exclusiveLock("repo:src"), exclusiveLock("repo:src:a:b"), "repo:src", `"holder" holds the lock repo:src above`},
		"the root":          {exclusiveLock("repo"), sharedLock("repo:src:a"), "repo", `holds the lock repo above`},
		"below":             {exclusiveLock("repo:src:a"), exclusiveLock("repo"), "repo:src:a", `"holder" holds the lock repo:src:a below`},
		"a reader below":    {sharedLock("repo:src:a"), exclusiveLock("repo:src"), "repo:src:a", `the lock repo:src:a below`},
		"a writer below":    {exclusiveLock("repo:src:a"), sharedLock("repo:src"), "repo:src:a", `the lock repo:src:a below`},
		"the lock":          {exclusiveLock("repo:src"), exclusiveLock("repo:src"), "repo:src", `"holder" holds the lock`},
		"another branch":    {exclusiveLock("repo:src:a"), exclusiveLock("repo:src:b"), "", ""},
		"a similar name":    {exclusiveLock("repo:src"), exclusiveLock("repo:src2"), "", ""},
		"readers":           {sharedLock("repo"), sharedLock("repo:src:a"), "", ""},
		"readers, reversed": {sharedLock("repo:src:a"), sharedLock("repo"), "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newTreeWorld(t)
			w.acquireIn("holder", 0, c.held)
			d := w.acquireIn("caller", 0, c.asked)
			if c.blocker == "" {
				if d.Err != nil || leaseOf(d).Name != c.asked.Name || leaseOf(d).Mode != c.asked.Mode || len(d.Leases) != 1 {
					t.Errorf("%+v, %v", leaseOf(d), d.Err)
				}
				return
			}
			refused := new(lock.Error)
			if !errors.As(d.Err, &refused) || refused.Code != lock.ErrHeld || refused.Holder != "holder" || !strings.Contains(refused.Detail, c.says) {
				t.Fatalf("refused with %v", d.Err)
			}
			name := c.asked.Name
			if len(refused.Blocked) > 0 {
				name = refused.Blocked[0].Name
			}
			if name != c.blocker {
				t.Errorf("blocked by %s: %+v", name, refused)
			}
		})
	}
}

func TestWaitingSubtreeIsNotOvertaken(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("a", 0, exclusiveLock("repo:src:a"))
	w.acquireIn("src", time.Minute/2, exclusiveLock("repo:src"))
	if d := w.acquireIn("b", time.Minute/2, exclusiveLock("repo:src:b")); !d.Queued {
		t.Errorf("a lock below a waiting one was decided with %v", d.Err)
	}
	if d := w.acquireIn("docs", 0, exclusiveLock("repo:docs")); d.Err != nil {
		t.Errorf("another branch was refused: %v", d.Err)
	}
	w.acquireIn("second a", time.Minute/2, exclusiveLock("repo:src:a"))
	if q := w.record("repo:src").QueueInfo(lock.View{Now: w.now, Self: w.self}).Waiters; len(q) != 3 || q[1].Name != "repo:src:b" || q[1].Ahead != 1 ||
		q[2].Name != "repo:src:a" || q[2].Ahead != 1 || q[0].BlockedBy != lock.BlockedByHolders || q[0].Leases[0].Name != "repo:src:a" {
		t.Errorf("the queue shows %+v", q)
	}
	w.releaseIn("a", "repo:src:a")
	if !w.holds("src", "repo:src") || w.holds("b", "repo:src:b") {
		t.Error("the waiter of the subtree was not next")
	}
	w.releaseIn("src", "repo:src")
	if !w.holds("b", "repo:src:b") || !w.holds("second a", "repo:src:a") {
		t.Error("the waiters below were not granted their locks together")
	}
}

func TestWaitersOfOneLockDoNotHinderOthers(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("holder", 0, exclusiveLock("repo:a"))
	w.acquireIn("waiter", time.Minute/2, exclusiveLock("repo:a"))
	if d := w.acquireIn("other", 0, exclusiveLock("repo:b")); d.Err != nil {
		t.Errorf("a free lock was refused because another one has a waiter: %v", d.Err)
	}
}

func TestExpiredLeaseBelowBlocksNothingAbove(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("gone", 0, exclusiveLock("repo:src:a"))
	w.now = w.now.Add(10 * time.Second) // nothing is swept
	if d := w.acquireIn("root", 0, exclusiveLock("repo")); d.Err != nil {
		t.Errorf("refused with %v", d.Err)
	}
}

func TestLockShowsWhatIsHeldBelow(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("one", 0, exclusiveLock("repo:src:a"))
	w.acquireIn("two", 0, sharedLock("repo:src:b"), sharedLock("repo:docs"))
	l := w.record("repo:src").Lock(w.now)
	if len(l.Below) != 2 || l.State != lock.Free || len(l.Leases) != 0 {
		t.Fatalf("%+v", l)
	}
	for i, want := range []string{"repo:src:a exclusive one []", "repo:src:b shared two [repo:docs repo:src:b]"} {
		b := l.Below[i]
		if got := fmt.Sprint(b.Name, " ", b.Mode, " ", b.Holder, " ", b.Set); got != want {
			t.Errorf("below is %s, not %s", got, want)
		}
	}
	if set := w.record("repo:src:a").Lock(w.now).Leases[0].Set; set != nil {
		t.Errorf("the lease alone is shown as a set of %v", set)
	}
}

func TestLeaseIsRenewedByItsOwnName(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	w.acquireIn("one", 0, exclusiveLock("repo:src:a"))
	w.acquireIn("two", 0, exclusiveLock("repo:x"), exclusiveLock("repo:y"))
	for what, c := range map[string]struct {
		holder string
		renew  lock.Renew
		want   error
		set    []string
	}{
		"its name":          {"one", lock.Renew{Locks: []string{"repo:src:a"}}, nil, nil},
		"an ancestor":       {"one", lock.Renew{Locks: []string{"repo:src"}}, lock.ErrLeaseInSet, []string{"repo:src:a"}},
		"all of a set":      {"two", lock.Renew{Locks: []string{"repo:x", "repo:y"}}, nil, nil},
		"a part of a set":   {"two", lock.Renew{Locks: []string{"repo:x"}}, lock.ErrLeaseInSet, []string{"repo:x", "repo:y"}},
		"more than was got": {"one", lock.Renew{Locks: []string{"repo:src", "repo:src:a"}}, lock.ErrInvalid, nil},
	} {
		c.renew.LeaseID = w.ids[c.holder]
		d := w.do(c.renew)
		refused := new(lock.Error)
		if c.want == nil && d.Err != nil || c.want != nil && (!errors.Is(d.Err, c.want) || !errors.As(d.Err, &refused) || !slices.Equal(refused.Set, c.set)) {
			t.Errorf("%s: %v, set %v", what, d.Err, refused.Set)
		}
	}
}

func TestFencedWriteInTreeNeedsAnActiveLease(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	first := w.acquireIn("first", 0, exclusiveLock("repo:a")).Leases[0].Token
	write := func(name string, token lock.Token) error {
		f := lock.FencedWrite{Key: "k", Lock: name, Token: token, InTree: true}
		newest, err := f.RequiredToken(w.record(name), w.now)
		if err == nil {
			_, err = f.Apply(lock.FencedValue{}, newest, w.now)
		}
		return err
	}
	if err := write("repo:a", first); err != nil {
		t.Errorf("the holder was refused: %v", err)
	}
	if err := write("repo", first); !errors.Is(err, lock.ErrStaleToken) {
		t.Errorf("the holder of a lock below could write as one of the root: %v", err)
	}
	w.now = w.now.Add(10 * time.Second)
	second := w.acquireIn("second", 0, exclusiveLock("repo")).Leases[0].Token
	if err := write("repo:a", first); second <= first || !errors.Is(err, lock.ErrStaleToken) {
		t.Errorf("token %d was granted above, and %d: %v", second, first, err)
	}
	if err := write("repo:a", second+5); !errors.Is(err, lock.ErrUnknownToken) {
		t.Errorf("a token that was never granted: %v", err)
	}
	if v := (lock.Verify{Name: "repo:a", Token: first}).Check(w.record("repo:a"), w.now); v.Status == lock.Current {
		t.Errorf("the lost token is %+v", v)
	}
}

func TestReadersAboveAndBelowKeepTheirTokens(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	above := w.acquireIn("above", 0, sharedLock("repo")).Leases[0].Token
	below := w.acquireIn("below", 0, sharedLock("repo:a")).Leases[0].Token
	if below <= above {
		t.Errorf("tokens %d and then %d", above, below)
	}
	for name, token := range map[string]lock.Token{"repo": above, "repo:a": below} {
		r := w.record(name)
		if v := (lock.Verify{Name: name, Token: token}).Check(r, w.now); v.Status != lock.Current {
			t.Errorf("token %d of %s is %s", token, name, v.Status)
		}
		f := lock.FencedWrite{Key: "k", Lock: name, Token: token, InTree: true}
		if newest, err := f.RequiredToken(r, w.now); err != nil || newest != token {
			t.Errorf("a write under %s needs %d, %v", name, newest, err)
		}
	}
	joined := w.acquireIn("joins", 0, sharedLock("repo")).Leases[0].Token
	if joined != above {
		t.Errorf("a reader of the root has token %d, and the other one %d", joined, above)
	}
}

func TestRevocationEndsTheIntentions(t *testing.T) {
	t.Parallel()
	w := newTreeWorld(t)
	token := w.acquireIn("one", 0, exclusiveLock("repo:src:a")).Leases[0].Token
	if d := w.applyAll(lock.Revoke{Name: "repo", Token: token, Reason: "test"}); !errors.Is(d.Err, lock.ErrTokenMismatch) ||
		!strings.Contains(d.Err.Error(), "repo:src:a below it") {
		t.Errorf("the revocation of a lock above was answered %v", d.Err)
	}
	d := w.applyAll(lock.Revoke{Name: "repo:src:a", Token: token, Reason: "test"})
	for ; d.FollowUp != nil; d = w.applyAll(d.FollowUp) {
	}
	if d.Err != nil {
		t.Fatal(d.Err)
	}
	if d := w.acquireIn("root", 0, exclusiveLock("repo")); d.Err != nil {
		t.Errorf("the root is blocked by what was revoked: %v", d.Err)
	}
}

func TestOverlappingTreesAreRefused(t *testing.T) {
	t.Parallel()
	trees := lock.Trees{"repo:src": {}, "b": {}}
	for root, want := range map[string]lock.Code{
		"repo": lock.ErrTreeOverlaps, "repo:src:a": lock.ErrTreeOverlaps, "b:a:c": lock.ErrTreeOverlaps,
		"repo:src": "", "repo:doc": "", "repo:src2": "", "a": "", "b2": "", "rep": "",
	} {
		err := trees.CheckDeclare(root)
		if want == "" && err != nil || want != "" && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %q", root, err, want)
		}
	}
	for i := len(trees); i < lock.MaxTrees; i++ {
		if err := trees.CheckDeclare(fmt.Sprint("tree-", i)); err != nil {
			t.Fatalf("tree %d: %v", i, err)
		}
		trees[fmt.Sprint("tree-", i)] = struct{}{}
	}
	if err := trees.CheckDeclare("one-more"); !errors.Is(err, lock.ErrInvalid) {
		t.Errorf("with %d trees: %v", len(trees), err)
	}
	if err := trees.CheckDeclare("b"); err != nil {
		t.Errorf("one of %d again: %v", len(trees), err)
	}
	for root, valid := range map[string]bool{"repo": true, "a:b": true, "repo:": false, "": false, ":a": false, "a b": false} {
		if err := lock.CheckRoot(root); (err == nil) != valid {
			t.Errorf("%q: %v", root, err)
		}
	}
}

// TestARepeatedCallFindsItsOwnEndInATree, not the lease of another lock of the tree for which a client has used the
// lease_id again.
func TestARepeatedCallFindsItsOwnEndInATree(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		first, second []lock.Member
		wait          time.Duration // of the first call
	}{
		"below":            {members(exclusiveLock("repo:src")), members(exclusiveLock("repo:src:a")), 0},
		"below the root":   {members(sharedLock("repo")), members(sharedLock("repo:src:a")), 0},
		"on a branch":      {members(exclusiveLock("repo:src:a")), members(exclusiveLock("repo:src:b")), 0},
		"a set below":      {members(exclusiveLock("repo:a"), exclusiveLock("repo:b")), members(exclusiveLock("repo:a:x"), exclusiveLock("repo:c")), 0},
		"a released place": {members(exclusiveLock("repo:src")), members(exclusiveLock("repo:src:a")), time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newTreeWorld(t)
			if c.wait > 0 {
				w.acquireIn("in the way", 0, exclusiveLock("repo"))
			}
			w.used = 100
			first := lock.Acquire{LeaseID: id(100), Holder: "h", Locks: c.first, Wait: c.wait}
			again, d := w.acquire(first)
			if d.Err != nil || d.Queued != (c.wait > 0) {
				t.Fatalf("queued: %v, %v", d.Queued, d.Err)
			}
			release := lock.Release{Locks: again.Names(), LeaseID: id(100)}
			if d := w.do(release); d.Err != nil {
				t.Fatal(d.Err)
			}
			if c.wait > 0 {
				w.releaseIn("in the way", "repo")
			}
			second, d := w.acquire(lock.Acquire{LeaseID: id(100), Holder: "h", Locks: c.second})
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			if d := w.do(release); d.Err != nil {
				t.Errorf("the release again: %v", d.Err)
			}
			if d := w.do(lock.Renew{Locks: again.Names(), LeaseID: id(100)}); !errors.Is(d.Err, lock.ErrLeaseLost) {
				t.Errorf("a renewal: %v", d.Err)
			}
			want := lock.ErrLeaseLost
			if c.wait > 0 {
				want = lock.ErrLeaseIDInUse // no lease has ended
			}
			if d := w.do(again); !errors.Is(d.Err, want) || want == lock.ErrLeaseLost && !strings.Contains(d.Err.Error(), "released") {
				t.Errorf("the acquire again: %v, want %v", d.Err, want)
			}
			if d := w.do(lock.Renew{Locks: second.Names(), LeaseID: id(100)}); d.Err != nil {
				t.Errorf("the lease is disturbed: %v", d.Err)
			}
		})
	}
}

// TestWhatHasEndedAboveIsNoAnswer: whether it is known depends on what else is in the batch.
func TestWhatHasEndedAboveIsNoAnswer(t *testing.T) {
	t.Parallel()
	for what, cmd := range map[string]lock.Command{
		"a claim":   lock.Claim{Locks: []string{"repo:a"}, LeaseID: id(1), Attachment: 1},
		"a leave":   lock.Leave{Locks: []string{"repo:a"}, LeaseID: id(1), Attachment: 1},
		"a renewal": lock.Renew{Locks: []string{"repo:a"}, LeaseID: id(1)},
		"a release": lock.Release{Locks: []string{"repo:a"}, LeaseID: id(1)},
	} {
		var texts []string
		for _, known := range []bool{true, false} {
			w := newTreeWorld(t)
			w.acquireIn("above", 0, exclusiveLock("repo"))
			w.releaseIn("above", "repo")
			if !known {
				clear(w.ended)
			}
			texts = append(texts, fmt.Sprint(w.do(cmd).Err))
		}
		if texts[0] != texts[1] {
			t.Errorf("%s is answered %q, and without the end of the lease above %q", what, texts[0], texts[1])
		}
	}
}
