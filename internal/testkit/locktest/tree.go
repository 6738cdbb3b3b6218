package locktest

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func treeCases() cases {
	return cases{
		"a tree is declared, listed and removed":                       treeDeclared,
		"a tree cannot be declared or removed while it is in use":      treeBusy,
		"a tree whose leases have ended can be declared and removed":   treeNotBusy,
		"trees do not overlap":                                         treeOverlaps,
		"a lock shows what is held above and below it":                 treeShown,
		"a lease is renewed and released by its own name":              treeLease,
		"a waiter below is granted its lock once the root is released": treeWaits,
		"a waiter at five levels is one waiter":                        treeWaiterCounts,
		"a chain of waits says at which lock what is in the way is":    treeChain,
		"a session ends its leases in a tree":                          treeSession,
		"a stale token of a subtree writes nothing":                    treeFenced,
	}
}

// declare declares the tree of the root. It tries again while the database is busy.
func (s *fixture) declare(root string) (declared lock.Tree) {
	s.Helper()
	var err error
	s.eventually("a tree is declared", func() bool {
		declared, err = s.locks().DeclareTree(s.ctx, root)
		return !errors.Is(err, lock.ErrUnavailable)
	})
	s.must(err)
	return declared
}

// remove removes the tree of the root.
func (s *fixture) remove(root string) {
	s.Helper()
	var err error
	s.eventually("a tree is removed", func() bool {
		err = s.locks().RemoveTree(s.ctx, root)
		return !errors.Is(err, lock.ErrUnavailable)
	})
	s.must(err)
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
	return s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: s.in(path), Mode: mode}}, Holder: path})
}

// expectBlocked ends the test unless the lock cannot be acquired now, and returns the refusal.
func (s *fixture) expectBlocked(a lock.Acquire) *facts {
	s.Helper()
	return s.expectError(errOf(s.acquire(a)), lock.ErrHeld)
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
	all, err := s.locks().Trees(s.ctx)
	s.must(err)
	if !slices.IsSortedFunc(all, func(a, b lock.Tree) int { return slices.Compare([]byte(a.Root), []byte(b.Root)) }) {
		s.Errorf("the trees are not in order: %+v", all)
	}
	return slices.ContainsFunc(all, func(t lock.Tree) bool { return t.Root == root && !t.DeclaredAt.IsZero() })
}

func treeBusy(s *fixture) {
	g := s.holdIn("a", lock.Exclusive)
	s.expectError(errOf(s.locks().DeclareTree(s.ctx, s.name)), lock.ErrTreeBusy)
	s.mustAcquire(lock.Acquire{}) // it is no tree
	s.must(s.release(g))
	s.expectError(errOf(s.locks().DeclareTree(s.ctx, s.name)), lock.ErrTreeBusy)

	other := s.name + "-declared"
	s.declare(other)
	held := s.mustAcquire(lock.Acquire{Locks: lock.One(other + ":a:b")})
	s.expectError(s.locks().RemoveTree(s.ctx, other), lock.ErrTreeBusy)
	s.expectBlocked(lock.Acquire{Locks: lock.One(other)}) // it is a tree still
	s.must(s.release(held))
	s.remove(other)
}

func treeNotBusy(s *fixture) {
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.in("a")), TTL: shortTTL})
	s.eventually("the tree is declared", func() bool {
		_, err := s.locks().DeclareTree(s.ctx, s.name)
		return err == nil
	})
	s.mustAcquire(lock.Acquire{Locks: lock.One(s.in("a:b")), TTL: shortTTL})
	s.eventually("the tree is removed", func() bool { return s.locks().RemoveTree(s.ctx, s.name) == nil })
}

func treeOverlaps(s *fixture) {
	s.declare(s.in("a"))
	for _, root := range []string{s.name, s.in("a:b")} {
		s.expectError(errOf(s.locks().DeclareTree(s.ctx, root)), lock.ErrTreeOverlaps)
	}
	s.declare(s.in("ab"))
}

func treeShown(s *fixture) {
	s.tree()
	g := s.holdIn("src", lock.Exclusive)
	r := s.holdIn("doc", lock.Shared)
	root := s.get(s.name)
	var below lock.Lock
	s.eventually("a replica that has decided nothing since reads the trees", func() bool {
		below = s.get(s.in("src:a"))
		return len(below.Above) > 0
	})
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
	a := lock.Acquire{Locks: lock.One(s.in("src:a")), LeaseID: newID()}
	g := s.mustAcquire(a)
	if len(g.Leases) != 1 || g.Name != a.Locks[0].Name {
		s.Errorf("the grant is %+v", g)
	}
	if again := s.mustAcquire(a); !again.Replayed || again.Token != g.Token || again.Name != a.Locks[0].Name {
		s.Errorf("the replay is %+v", again)
	}
	renewed, err := s.renew(g, 2*longTTL)
	s.must(err)
	if len(renewed.Leases) != 1 || renewed.Token != g.Token || renewed.TTL != 2*longTTL {
		s.Errorf("the renewed lease is %+v", renewed)
	}
	s.expectError(errOf(s.locks().Renew(s.ctx, lock.Renew{Locks: []string{s.in("src")}, LeaseID: g.ID})), lock.ErrLeaseInSet)
	e := s.expectBlocked(lock.Acquire{Locks: lock.One(s.name)})
	if len(e.Blocked) != 1 || e.Blocked[0].Name != a.Locks[0].Name || e.Holder != "first" || e.RetryAfter <= 0 {
		s.Errorf("above it the refusal is %+v", e)
	}
	s.must(s.release(g))
	s.must(s.release(g))
	s.expectLost(errOf(s.renew(g, longTTL)), lock.Released)
	set := s.mustAcquire(lock.Acquire{Locks: []lock.Member{{Name: s.in("src:a")}, {Name: s.in("src")}, {Name: s.in("doc")}}})
	if names := namesOf(set); !slices.Equal(names, []string{s.in("doc"), s.in("src"), s.in("src:a")}) {
		s.Errorf("the leases are of %v", names)
	}
	s.must(errOf(s.renew(set, longTTL)))
	s.must(s.release(set))
	s.mustAcquire(lock.Acquire{})
}

func treeWaits(s *fixture) {
	s.tree()
	root := s.mustAcquire(lock.Acquire{Holder: "root"})
	a := s.enqueue(lock.Acquire{Locks: lock.One(s.in("src:a")), Holder: "a"})
	b := s.enqueue(lock.Acquire{Locks: []lock.Member{{Name: s.in("src:b"), Mode: lock.Shared}}, Holder: "b"})
	s.must(s.release(root))
	for _, g := range []lock.Grant{a.mustBeGranted(), b.mustBeGranted()} {
		if len(g.Leases) != 1 || g.Token <= root.Token {
			s.Errorf("the grant is %+v", g)
		}
		s.must(errOf(s.renew(g, longTTL)))
	}
}

// treeChain: a waiter waits behind one for the root, which waits for a lease below it.
func treeChain(s *fixture) {
	s.tree()
	s.holdIn("held", lock.Exclusive)
	s.enqueue(lock.Acquire{Holder: "root"})
	s.enqueue(lock.Acquire{Locks: lock.One(s.in("below")), Holder: "below"})
	want := []lock.DeadlockStep{
		{Name: s.in("below"), Holder: "below", WaitsFor: "root", At: s.name, Ahead: true},
		{Name: s.name, Holder: "root", WaitsFor: "held", At: s.in("held")},
	}
	if c := s.queue(s.in("below")).Chain; c == nil || c.End != lock.ChainUnknown || !slices.Equal(c.Steps, want) {
		s.Errorf("the chain is %+v, want %+v", c, want)
	}
}

// treeWaiterCounts: a lock shows its own waiters, and how many wait below; only the former make it contended. All
// queues in which the waiter is say what blocks it.
func treeWaiterCounts(s *fixture) {
	s.tree()
	s.holdIn("1", lock.Exclusive)
	deep := s.in("1:2:3:4")
	s.enqueue(lock.Acquire{Locks: lock.One(deep), Holder: "deep"})
	for level, name := range []string{s.name, s.in("1"), s.in("1:2"), s.in("1:2:3"), deep} {
		l, wantOwn, wantBelow := s.get(name), 0, 1
		if name == deep {
			wantOwn, wantBelow = 1, 0
		}
		if l.Waiters != wantOwn || l.WaitersBelow != wantBelow {
			s.Errorf("%s has %d waiters, and %d below", name, l.Waiters, l.WaitersBelow)
		}
		q := s.queue(name).Waiters
		if len(q) != 1 || q[0].BlockedBy != lock.BlockedByHolders || len(q[0].Leases) != 1 || q[0].Leases[0].Holder != "1" || (q[0].BlockedAt == "") != (level == 1) {
			s.Errorf("the queue of %s is %+v", name, q)
		}
	}
	all, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name})
	s.must(err)
	own, below := 0, 0
	for _, l := range all.Items {
		own, below = own+l.Waiters, below+l.WaitersBelow
	}
	if own != 1 || below != 4 {
		s.Errorf("the list has %d waiters, and %d below", own, below)
	}
	contended, err := s.locks().Locks(s.ctx, paddock.LockQuery{Prefix: s.name, Contended: true})
	s.must(err)
	if len(contended.Items) != 1 || contended.Items[0].Name != deep {
		s.Errorf("contended are %+v", contended.Items)
	}
}

func treeSession(s *fixture) {
	s.tree()
	session := s.openSession(lock.OpenSession{})
	g := s.mustAcquire(lock.Acquire{Locks: lock.One(s.in("src:a")), SessionID: session.ID})
	info, err := s.locks().Session(s.ctx, session.ID.Ref())
	s.must(err)
	if info.Leases != 1 || len(info.Locks) != 1 || info.Locks[0].Name != g.Name {
		s.Errorf("the session has %+v", info)
	}
	s.mustSkipGrace(s.mustAcquire(lock.Acquire{Locks: lock.One(s.in("src:b")), SessionID: session.ID}))
	if renewed, err := s.locks().RenewSession(s.ctx, lock.RenewSession{ID: session.ID}); err != nil || renewed.RevokedLeases != 1 {
		s.Errorf("after a revocation the session is %+v, %v", renewed, err)
	}
	root := s.enqueue(lock.Acquire{Holder: "root"})
	s.must(s.locks().CloseSession(s.ctx, lock.CloseSession{ID: session.ID}))
	root.mustBeGranted()
}

func treeFenced(s *fixture) {
	s.tree()
	write := func(g lock.Grant) error {
		_, err := s.locks().WriteFenced(s.ctx, lock.FencedWrite{Key: s.name, Lock: g.Name, Token: g.Token, Value: json.RawMessage(`"x"`)})
		return err
	}
	g := s.mustAcquire(lock.Acquire{Locks: lock.One(s.in("src:a")), TTL: shortTTL})
	root := s.startAcquire(lock.Acquire{Holder: "root"}).mustBeGranted()
	s.expectError(write(g), lock.ErrStaleToken)
	s.must(write(root))
	s.must(s.release(root))
	next := s.holdIn("src:a", lock.Exclusive)
	s.must(write(next))
	s.expectError(write(root), lock.ErrStaleToken)
}
