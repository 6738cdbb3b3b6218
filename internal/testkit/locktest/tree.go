package locktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/paddock-lock/paddock/lock"
)

func treeCases() cases {
	return cases{
		"a tree is declared, listed and removed":                       treeDeclared,
		"a tree cannot be declared or removed while it is in use":      treeBusy,
		"a tree whose leases have ended can be declared and removed":   treeNotBusy,
		"trees do not overlap":                                         treeOverlaps,
		"an invalid root is refused":                                   treeInvalid,
		"a name that only begins like the root is outside":             treeOutside,
		"a lease excludes those above and below it":                    treeExcludes,
		"shared leases go together, above and below":                   treeShared,
		"a refusal names what blocks, above or below":                  treeRefused,
		"a lock shows what is held above and below it":                 treeShown,
		"a lease is renewed and released by its own name":              treeLease,
		"an expired lease below blocks nothing above":                  treeExpired,
		"a revoked lease below blocks nothing above":                   treeRevoked,
		"a waiter for a subtree is not overtaken below":                treeOvertaken,
		"a waiter below is granted its lock once the root is released": treeWaits,
		"a set can have a lock and one above it":                       treeSet,
		"a session ends its leases in a tree":                          treeSession,
		"permits, and names of too many levels, are refused":           treeRefuses,
		"a stale token of a subtree writes nothing":                    treeFenced,
		"never two at once, above and below":                           treeRace,
	}
}

// tree declares the tree of all locks of the test.
func (s *fixture) tree() {
	s.Helper()
	s.declare(s.name)
}

// in returns the name of the lock at the path in the tree.
func (s *fixture) in(path string) string { return s.name + ":" + path }

// holdIn acquires the lock at the path in the tree, for a holder of the same name.
func (s *fixture) holdIn(path string, mode lock.Mode) lock.Grant {
	s.Helper()
	return s.mustAcquire(lock.Acquire{Name: s.in(path), Holder: path, Mode: mode})
}

// expectBlocked ends the test unless the lock cannot be acquired now, and returns the refusal.
func (s *fixture) expectBlocked(a lock.Acquire) *facts {
	s.Helper()
	_, err := s.acquire(a)
	return s.expectError(err, lock.ErrHeld)
}

func treeDeclared(s *fixture) {
	first, again := s.declare(s.name), s.declare(s.name)
	if first.Root != s.name || first.DeclaredAt.IsZero() || again.Root != s.name || !isNear(again.DeclaredAt, first.DeclaredAt) {
		s.Errorf("declared twice, the tree is %+v and %+v", first, again)
	}
	if !s.isTree(s.name) {
		s.Error("the tree is not listed")
	}
	s.remove(s.name)
	s.remove(s.name)
	if s.isTree(s.name) {
		s.Error("the removed tree is listed")
	}
	s.holdIn("a", lock.Exclusive)
	s.mustAcquire(lock.Acquire{})
}

// isTree reports whether the root is listed.
func (s *fixture) isTree(root string) bool {
	s.Helper()
	all, err := s.locks.Trees(s.ctx)
	s.must(err)
	if !slices.IsSortedFunc(all, func(a, b lock.Tree) int { return slices.Compare([]byte(a.Root), []byte(b.Root)) }) {
		s.Errorf("the trees are not in order: %+v", all)
	}
	return slices.ContainsFunc(all, func(t lock.Tree) bool { return t.Root == root && !t.DeclaredAt.IsZero() })
}

func treeBusy(s *fixture) {
	g := s.holdIn("a", lock.Exclusive)
	_, err := s.locks.DeclareTree(s.ctx, s.name)
	s.expectError(err, lock.ErrTreeBusy)
	s.mustAcquire(lock.Acquire{}) // it is no tree
	s.must(s.release(g))
	_, err = s.locks.DeclareTree(s.ctx, s.name)
	s.expectError(err, lock.ErrTreeBusy)

	other := s.name + "-declared"
	s.declare(other)
	held := s.mustAcquire(lock.Acquire{Name: other + ":a:b"})
	s.expectError(s.locks.RemoveTree(s.ctx, other), lock.ErrTreeBusy)
	s.expectBlocked(lock.Acquire{Name: other}) // it is a tree still
	s.must(s.release(held))
	s.remove(other)
}

func treeNotBusy(s *fixture) {
	s.mustAcquire(lock.Acquire{Name: s.in("a"), TTL: shortTTL})
	s.eventually("the tree is declared", func() bool {
		_, err := s.locks.DeclareTree(s.ctx, s.name)
		return err == nil
	})
	s.mustAcquire(lock.Acquire{Name: s.in("a:b"), TTL: shortTTL})
	s.eventually("the tree is removed", func() bool { return s.locks.RemoveTree(s.ctx, s.name) == nil })
}

func treeOverlaps(s *fixture) {
	s.declare(s.in("a"))
	for _, root := range []string{s.name, s.in("a:b"), s.in("a:b:c")} {
		_, err := s.locks.DeclareTree(s.ctx, root)
		s.expectError(err, lock.ErrTreeOverlaps)
	}
	for _, root := range []string{s.in("b"), s.in("ab"), s.in("a-b")} {
		s.declare(root)
	}
}

func treeInvalid(s *fixture) {
	for _, root := range []string{"", s.name + ":", "a b", ":a"} {
		_, err := s.locks.DeclareTree(s.ctx, root)
		if e := s.expectError(err, lock.ErrInvalid); e.Field != "root" {
			s.Errorf("the refusal of %q is %+v", root, e)
		}
	}
}

func treeOutside(s *fixture) {
	s.tree()
	s.mustAcquire(lock.Acquire{})
	s.mustAcquire(lock.Acquire{Name: s.name + "-other:a"})
	s.mustAcquire(lock.Acquire{Name: s.name + ".a"})
}

func treeExcludes(s *fixture) {
	s.tree()
	g := s.holdIn("src:a", lock.Exclusive)
	for _, name := range []string{s.name, s.in("src"), s.in("src:a"), s.in("src:a:b")} {
		s.expectBlocked(lock.Acquire{Name: name})
		s.expectBlocked(lock.Acquire{Name: name, Mode: lock.Shared})
	}
	s.holdIn("src:b", lock.Exclusive)
	s.holdIn("doc", lock.Exclusive)
	s.must(s.release(g))
	again := s.holdIn("src:a", lock.Exclusive)
	if again.Token <= g.Token {
		s.Errorf("token %d was granted after %d", again.Token, g.Token)
	}
}

func treeShared(s *fixture) {
	s.tree()
	s.mustAcquire(lock.Acquire{Mode: lock.Shared})
	s.holdIn("src", lock.Shared)
	s.holdIn("src:a", lock.Shared)
	for _, name := range []string{s.name, s.in("src"), s.in("src:a"), s.in("src:a:b"), s.in("src:b")} {
		s.expectBlocked(lock.Acquire{Name: name})
	}
}

func treeRefused(s *fixture) {
	s.tree()
	s.holdIn("src", lock.Exclusive)
	for _, at := range []string{s.name, s.in("src:a")} {
		e := s.expectBlocked(lock.Acquire{Name: at})
		if len(e.Blocked) != 1 || e.Blocked[0].Name != s.in("src") || e.Holder != "src" || e.RetryAfter <= 0 {
			s.Errorf("at %s the refusal is %+v", at, e)
		}
	}
}

func treeShown(s *fixture) {
	s.tree()
	g := s.holdIn("src", lock.Exclusive)
	r := s.holdIn("doc", lock.Shared)
	root, below := s.get(s.name), s.get(s.in("src:a"))
	if root.State != lock.Free || len(root.Leases)+len(root.Above) != 0 || len(root.Below) != 2 {
		s.Fatalf("the root is %+v", root)
	}
	for _, info := range root.Below {
		want := g
		if info.Name == r.Name {
			want = r
		}
		if info.Name != want.Name || info.Holder != want.Holder || info.Mode != want.Mode || info.Token != want.Token || info.Remaining <= 0 {
			s.Errorf("below the root is %+v, want %+v", info, want.Lease)
		}
	}
	if len(below.Above) != 1 || len(below.Below) != 0 {
		s.Fatalf("the lock below is %+v", below)
	}
	if info := below.Above[0]; info.Name != g.Name || info.Holder != "src" || info.Token != g.Token {
		s.Errorf("above is %+v", info)
	}
	s.must(s.release(g))
	if after := s.get(s.in("src:a")); len(after.Above) != 0 || after.Version() == below.Version() {
		s.Errorf("after the release the lock is %+v, version %s", after, after.Version())
	}
}

func treeLease(s *fixture) {
	s.tree()
	a := lock.Acquire{Name: s.in("src:a"), LeaseID: newID()}
	g := s.mustAcquire(a)
	if g.Members != nil || g.Name != a.Name {
		s.Errorf("the grant is %+v", g)
	}
	if again := s.mustAcquire(a); !again.Replayed || again.Token != g.Token || again.Name != a.Name {
		s.Errorf("the replay is %+v", again)
	}
	renewed, err := s.renew(g, 2*longTTL)
	s.must(err)
	if renewed.Members != nil || renewed.Token != g.Token || renewed.TTL != 2*longTTL {
		s.Errorf("the renewed lease is %+v", renewed)
	}
	_, err = s.locks.Renew(s.ctx, lock.Renew{Name: s.in("src"), LeaseID: g.ID})
	s.expectError(err, lock.ErrLeaseInSet)
	s.must(s.release(g))
	s.must(s.release(g))
	_, err = s.renew(g, longTTL)
	s.expectLost(err, lock.Released)
	s.mustAcquire(lock.Acquire{})
}

func treeExpired(s *fixture) {
	s.tree()
	s.mustAcquire(lock.Acquire{Name: s.in("src:a"), TTL: shortTTL})
	if g := s.startAcquire(lock.Acquire{Holder: "root"}).mustBeGranted(); g.Name != s.name {
		s.Errorf("the grant is %+v", g)
	}
	s.eventually("nothing is held below", func() bool { return len(s.get(s.in("src")).Below) == 0 })
}

func treeRevoked(s *fixture) {
	s.tree()
	g := s.holdIn("src:a", lock.Exclusive)
	root := s.enqueue(lock.Acquire{Holder: "root"})
	_, err := s.locks.Revoke(s.ctx, lock.Revoke{Name: g.Name, Token: g.Token, Reason: "test"})
	s.must(err)
	root.mustBeGranted()
	_, err = s.renew(g, longTTL)
	s.expectLost(err, lock.Revoked)
}

func treeOvertaken(s *fixture) {
	s.tree()
	held := s.holdIn("src:a", lock.Exclusive)
	src := s.enqueue(lock.Acquire{Name: s.in("src"), Holder: "src"})
	e := s.expectBlocked(lock.Acquire{Name: s.in("src:b")})
	if len(e.Blocked) != 1 || e.Ahead == 0 {
		s.Errorf("the refusal is %+v", e)
	}
	below := s.enqueue(lock.Acquire{Name: s.in("src:b"), Holder: "src:b"})
	s.holdIn("doc", lock.Exclusive)
	s.must(s.release(held))
	g := src.mustBeGranted()
	s.must(s.release(g))
	if next := below.mustBeGranted(); next.Token <= g.Token {
		s.Errorf("token %d was granted after %d", next.Token, g.Token)
	}
}

func treeWaits(s *fixture) {
	s.tree()
	root := s.mustAcquire(lock.Acquire{Holder: "root"})
	a := s.enqueue(lock.Acquire{Name: s.in("src:a"), Holder: "a"})
	b := s.enqueue(lock.Acquire{Name: s.in("src:b"), Holder: "b", Mode: lock.Shared})
	s.must(s.release(root))
	for _, g := range []lock.Grant{a.mustBeGranted(), b.mustBeGranted()} {
		if g.Members != nil || g.Token <= root.Token {
			s.Errorf("the grant is %+v", g)
		}
		_, err := s.renew(g, longTTL)
		s.must(err)
	}
}

func treeSet(s *fixture) {
	s.tree()
	g := s.mustAcquire(lock.Acquire{Set: []lock.Member{{Name: s.in("src:a")}, {Name: s.in("src")}, {Name: s.in("doc")}}})
	if names := namesOf(g); !slices.Equal(names, []string{s.in("doc"), s.in("src"), s.in("src:a")}) {
		s.Errorf("the leases are of %v", names)
	}
	s.expectBlocked(lock.Acquire{Name: s.in("src:b")})
	_, err := s.renew(g, longTTL)
	s.must(err)
	s.must(s.release(g))
	_, err = s.acquire(lock.Acquire{Set: []lock.Member{{Name: s.in("src:a")}, {Name: s.in("src"), Mode: lock.Shared}}})
	s.expectError(err, lock.ErrInvalid)
	s.mustAcquire(lock.Acquire{})
}

func treeSession(s *fixture) {
	s.tree()
	session := s.openSession(lock.OpenSession{})
	g := s.mustAcquire(lock.Acquire{Name: s.in("src:a"), SessionID: session.ID})
	info, err := s.locks.Session(s.ctx, session.ID.Ref())
	s.must(err)
	if info.Leases != 1 || len(info.Locks) != 1 || info.Locks[0].Name != g.Name {
		s.Errorf("the session has %+v", info)
	}
	root := s.enqueue(lock.Acquire{Holder: "root"})
	s.must(s.locks.CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
	root.mustBeGranted()
}

func treeRefuses(s *fixture) {
	s.tree()
	deep := s.name
	for range lock.MaxTreeLevels - 1 {
		deep += ":a"
	}
	s.must(s.release(s.mustAcquire(lock.Acquire{Name: deep})))
	for what, a := range map[string]lock.Acquire{
		"mode": {Name: s.in("a"), Mode: lock.Permit, Capacity: 2}, "name": {Name: deep + ":a"},
	} {
		_, err := s.acquire(a)
		if e := s.expectError(err, lock.ErrInvalid); e.Field != what {
			s.Errorf("the refusal is %+v, want that of %s", e, what)
		}
	}
	s.mustAcquire(lock.Acquire{Name: s.name + "-other", Mode: lock.Permit, Capacity: 2})
}

func treeFenced(s *fixture) {
	s.tree()
	write := func(g lock.Grant) error {
		_, err := s.locks.WriteFenced(s.ctx, lock.FencedWrite{Key: s.name, Lock: g.Name, Token: g.Token, Value: json.RawMessage(`"x"`)})
		return err
	}
	g := s.mustAcquire(lock.Acquire{Name: s.in("src:a"), TTL: shortTTL})
	root := s.startAcquire(lock.Acquire{Holder: "root"}).mustBeGranted()
	s.expectError(write(g), lock.ErrStaleToken)
	s.must(write(root))
	s.must(s.release(root))
	next := s.holdIn("src:a", lock.Exclusive)
	s.must(write(next))
	s.expectError(write(root), lock.ErrStaleToken)
}

// treeRace has clients that acquire locks at all levels, each of which writes down what it holds for a moment.
func treeRace(s *fixture) {
	s.tree()
	paths := []string{s.name, s.in("a"), s.in("a:a"), s.in("a:b"), s.in("b:a")}
	held := struct {
		sync.Mutex
		names map[string]bool
	}{names: map[string]bool{}}
	covers := func(a, b string) bool { return a == b || len(b) > len(a) && b[:len(a)+1] == a+":" }
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for n := range 6 {
				name := paths[(i+n)%len(paths)]
				g, err := s.acquirePatiently(s.ctx, s.complete(lock.Acquire{Name: name, Holder: fmt.Sprint(i)}))
				if err != nil {
					s.Errorf("%s: %v", name, err)
					return
				}
				held.Lock()
				for other := range held.names {
					if covers(name, other) || covers(other, name) {
						s.Errorf("%s was granted while %s was held", name, other)
					}
				}
				held.names[name] = true
				held.Unlock()
				time.Sleep(time.Millisecond)
				held.Lock()
				delete(held.names, name)
				held.Unlock()
				if err := s.release(g); err != nil {
					s.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	clients.Wait()
}
