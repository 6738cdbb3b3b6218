package cells_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
	"github.com/paddock-lock/paddock/store/internal/cells"
)

// TestEverythingOfAGroupMoves: there and back.
func TestEverythingOfAGroupMoves(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g, other := h.groupOf("main", 0), h.groupOf("main", 1)
	s, ctx := h.in("main"), t.Context()

	held := h.acquire("main", acquire(g+":held"))
	stays := h.acquire("main", acquire(other+":held"))
	again := acquire(g + ":ended")
	h.release("main", h.acquire("main", again))
	var readers, permits []lock.Grant
	for range 3 {
		a := acquire(g + ":shared")
		a.Locks[0].Mode = lock.Shared
		readers = append(readers, h.acquire("main", a))
		a = acquire(g + ":permits")
		a.Locks[0].Mode, a.Locks[0].Capacity = lock.Permit, 3
		permits = append(permits, h.acquire("main", a))
	}
	set := acquire(g + ":one")
	set.Locks = append(set.Locks, lock.Member{Name: g + ":two", Mode: lock.Exclusive})
	both := h.acquire("main", set)
	if _, err := s.DeclareTree(ctx, g+":tree"); err != nil {
		t.Fatal(err)
	}
	leaf := h.acquire("main", acquire(g+":tree:leaf"))
	if _, err := s.Freeze(ctx, lock.FreezeRequest{Scope: lock.Scope(g + ":cold:"), Reason: "audit"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetRule(ctx, lock.Rule{Scope: lock.Scope(g + ":short:"), MaxTTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	write := lock.FencedWrite{Key: g + ":value", Lock: g + ":held", Token: held.Token, Value: []byte(`"1"`), OperationID: "op"}
	if _, err := s.WriteFenced(ctx, write); err != nil {
		t.Fatal(err)
	}
	closed := h.acquire("main", acquire(g+":closed"))
	if err := s.Release(ctx, lock.Release{Locks: []string{closed.Name}, LeaseID: closed.ID, Closed: lock.Closing{For: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	before := h.history("main", g+":held")

	for _, way := range []struct{ from, to string }{{"main", "spare"}, {"spare", "main"}} {
		h.pin(way.to, g)
		h.isIn(way.to, g)
		h.renew("main", stays)
		s := h.in(way.to)
		if renewed := h.renew(way.to, held); renewed.Token != held.Token || renewed.ExpiresAt.Before(held.ExpiresAt) {
			t.Errorf("in %s the lease is %+v, was %+v", way.to, renewed.Lease, held.Lease)
		}
		for _, grant := range slices.Concat(readers, permits, []lock.Grant{both, leaf}) {
			h.renew(way.to, grant)
		}
		if _, err := s.Acquire(ctx, acquire(g+":held")); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("another client is answered %v", err)
		}
		if _, err := s.Acquire(ctx, acquire(g+":tree")); !errors.Is(err, lock.ErrHeld) {
			t.Errorf("above a held lock of the tree: %v", err)
		}
		if _, err := s.Acquire(ctx, acquire(g+":cold:x")); !errors.Is(err, lock.ErrFrozen) {
			t.Errorf("a frozen lock: %v", err)
		}
		if got := h.acquire(way.to, func() lock.Acquire { a := acquire(g + ":short:" + way.to); a.TTL = 0; return a }()); got.TTL > time.Second {
			t.Errorf("under a rule the TTL is %v", got.TTL)
		}
		once := acquire(g + ":closed")
		once.Once = true
		if _, err := s.Acquire(ctx, once); !errors.Is(err, lock.ErrAlreadyDone) {
			t.Errorf("a closed lock: %v", err)
		}
		if _, err := s.Acquire(ctx, again); !errors.Is(err, lock.ErrLeaseLost) {
			t.Errorf("a lease that has ended is answered %v", err)
		}
		if f, err := s.WriteFenced(ctx, write); err != nil || f.Version != 1 {
			t.Errorf("a repeated operation: %+v, %v", f, err)
		}
		newer := h.acquire(way.to, acquire(g+":new:"+way.to))
		if newer.Token <= held.Token || newer.Token <= leaf.Token {
			t.Errorf("the token %d is not above those from before the move", newer.Token)
		}
		after := h.history(way.to, g+":held")
		if !slices.Equal(after, before) {
			t.Errorf("the history was %v and is %v", before, after)
		}
		page, err := s.Events(ctx, paddock.EventQuery{Prefix: g + ":", Limit: paddock.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		if own := slices.ContainsFunc(page.Items, func(e lock.Event) bool { return e.ID == before[0] }); own != (way.to == "main") {
			t.Errorf("the events of the prefix in %s have one that was written in main: %t", way.to, own)
		}
		held = h.renew(way.to, held)
	}
	h.release("main", held)
	if next := h.acquire("main", acquire(g+":held")); next.Token <= held.Token {
		t.Errorf("the token %d followed %d", next.Token, held.Token)
	}
	if ids := h.history("main", g+":held"); len(ids) != len(before)+2 || !slices.IsSorted(ids) {
		t.Errorf("the history is %v", ids)
	}
}

// TestWaitersKeepTheirOrder while their lock moves, and are granted it in the other cell when they come there.
func TestWaitersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	name := h.groupOf("main", 0) + ":x"
	held := h.acquire("main", acquire(name))
	const waiters = 5
	answers := make([]chan error, waiters)
	order := make(chan int, waiters)
	var calls []lock.Acquire
	for i := range waiters {
		a := acquire(name)
		a.Wait = lock.MaxWait
		calls = append(calls, a)
		answers[i] = make(chan error, 1)
		go func() {
			_, err := h.in("main").Acquire(t.Context(), a)
			answers[i] <- err
		}()
		await.Until(t, "the call waits", func() bool {
			q, err := h.in("main").Queue(t.Context(), name)
			return err == nil && len(q.Waiters) == i+1
		})
	}
	h.pin("spare", strings.TrimSuffix(name, ":x"))
	var clients sync.WaitGroup
	for i := range slices.Backward(calls) { // the last one comes first
		if err := <-answers[i]; !errors.Is(err, lock.ErrUnavailable) {
			t.Fatalf("a call that waits is answered %v", err)
		}
		clients.Go(func() {
			g, err := h.in("spare").Acquire(t.Context(), calls[i])
			if err != nil {
				t.Error(err)
			}
			order <- i
			h.release("spare", g)
		})
		await.Until(t, "it waits again", func() bool {
			return h.number("spare", "select count(*) from paddock.parts where place > 0 and lease_id = $1 and attachment <> 0 and replica in (select id from paddock.replicas)",
				uuid.UUID(calls[i].LeaseID)) == 1
		})
	}
	h.release("spare", held)
	for want := range waiters {
		if got := <-order; got != want {
			t.Errorf("waiter %d was granted the lock when it was the turn of %d", got, want)
		}
	}
	clients.Wait()
}

// TestALeaseHasItsWholeTTLAgainInTheOtherCell from the move on, and no more, exclusive and shared.
func TestALeaseHasItsWholeTTLAgainInTheOtherCell(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	shared := acquire(g + ":shared")
	shared.Locks[0].Mode = lock.Shared
	held := []lock.Grant{h.acquire("main", acquire(g+":x")), h.acquire("main", shared)}
	shared.LeaseID = lock.LeaseID(uuid.New())
	held = append(held, h.acquire("main", shared))
	clock := func() (now time.Time) {
		if err := pgtest.Connect(t, h.url("spare")).QueryRow(t.Context(), "select clock_timestamp()").Scan(&now); err != nil {
			t.Fatal(err)
		}
		return now
	}
	before := clock()
	h.pin("spare", g)
	after := clock()
	for _, grant := range held {
		l, err := h.in("spare").Lock(t.Context(), grant.Name)
		if err != nil || len(l.Leases) == 0 {
			t.Fatalf("%s: %+v, %v", grant.Name, l, err)
		}
		for _, lease := range l.Leases {
			if end := lease.ExpiresAt; end.Before(before.Add(grant.TTL)) || end.After(after.Add(grant.TTL)) {
				t.Errorf("%s ends at %v; it moved between %v and %v, and its TTL is %v", grant.Name, end, before, after, grant.TTL)
			}
		}
	}
}

// TestWhatWasOverStaysOver: a lease, a session and an ended one, each of which would be active if it had its TTL again.
func TestWhatWasOverStaysOver(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	conn := pgtest.Connect(t, h.url("main"))
	over := h.acquire("main", acquire(g+":over"))
	open := func(cell string, id lock.SessionID) lock.SessionGrant {
		s, err := h.in(cell).OpenSession(t.Context(), lock.OpenSession{ID: id, Holder: "worker", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	in := func(s lock.SessionGrant, name string) lock.Grant {
		a := acquire(name)
		a.SessionID, a.TTL = s.ID, 0
		return h.acquire("main", a)
	}
	dead, alive := open("main", lock.SessionID{}), open("main", lock.SessionID{})
	open("spare", dead.ID)
	open("spare", alive.ID)
	of, kept := in(dead, g+":of-session"), in(alive, g+":kept")
	err := cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(step string) error {
		if step == cells.Steps[1] { // the rows are set back when the source decides nothing more, so it sweeps none of them
			pgtest.Exec(t, conn, "update paddock.records set expires_at = clock_timestamp() where name = $1", over.Name)
			pgtest.Exec(t, conn, "update paddock.sessions set expires_at = clock_timestamp() where ref = $1", int64(dead.ID.Ref()))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.isIn("spare", g)
	for _, lost := range []lock.Grant{over, of} {
		if _, err := h.in("spare").Renew(t.Context(), lock.Renew{Locks: []string{lost.Name}, LeaseID: lost.ID}); !errors.Is(err, lock.ErrLeaseLost) {
			t.Errorf("%s is renewed: %v", lost.Name, err)
		}
		h.acquire("spare", acquire(lost.Name))
	}
	if _, err := h.in("spare").RenewSession(t.Context(), lock.RenewSession{ID: dead.ID}); !errors.Is(err, lock.ErrSessionLost) {
		t.Errorf("the session that was over is renewed: %v", err)
	}
	if _, err := h.in("spare").RenewSession(t.Context(), lock.RenewSession{ID: alive.ID}); err != nil {
		t.Errorf("the other session: %v", err)
	}
	if _, err := h.in("spare").Acquire(t.Context(), acquire(kept.Name)); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("its lock is free: %v", err)
	}
}

// holdInSession opens a session in main, and acquires the lock in it.
func (h *harness) holdInSession(name string, ttl time.Duration) lock.SessionGrant {
	h.Helper()
	s, err := h.in("main").OpenSession(h.Context(), lock.OpenSession{Holder: "worker", TTL: ttl})
	if err != nil {
		h.Fatal(err)
	}
	a := acquire(name)
	a.SessionID, a.TTL = s.ID, 0
	h.acquire("main", a)
	return s
}

// TestASessionThatIsClosedWhileItsLocksMoveEndsInTheOtherCell after the locks have arrived there with the session open.
func TestASessionThatIsClosedWhileItsLocksMoveEndsInTheOtherCell(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	s := h.holdInSession(g+":x", time.Hour)
	err := cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(step string) error {
		if step == cells.Steps[2] {
			if err := h.in("main").CloseSession(t.Context(), lock.CloseSession{ID: s.ID}); !errors.Is(err, lock.ErrUnknownOutcome) {
				t.Errorf("closing it is answered %v, although a lock of it has left", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the lock is free", func() bool {
		_, err := h.in("spare").Acquire(t.Context(), acquire(g+":x"))
		return err == nil
	})
}

// TestAMoveThatIsKilledIsFinished after each step, by the same command.
func TestAMoveThatIsKilledIsFinished(t *testing.T) {
	t.Parallel()
	for i, killed := range cells.Steps {
		t.Run(killed, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, "main", "spare", "third")
			g := h.groupOf("main", 0)
			held := h.acquire("main", acquire(g+":x"))
			err := cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(step string) error {
				if step == killed {
					return cells.ErrKilled
				}
				return nil
			})
			if !errors.Is(err, cells.ErrKilled) {
				t.Fatal(err)
			}
			want := [][]string{{"main"}, nil, {"spare"}, {"spare"}}[i]
			if owners := h.owners(g); !slices.Equal(owners, want) {
				t.Errorf("killed there, the group is in %q, want %q", owners, want)
			}
			h.pin("spare", g)
			h.isIn("spare", g)
			held = h.renew("spare", held)
			h.pin("third", g)
			h.isIn("third", g)
			h.renew("third", held)
			if ids := h.history("third", g+":x"); len(ids) != 1 {
				t.Errorf("the history is %v", ids)
			}
		})
	}
}

// TestAnotherTargetFinishesTheMoveFirst that was killed after each step.
func TestAnotherTargetFinishesTheMoveFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare", "third")
	g := h.groupOf("main", 0)
	held := h.acquire("main", acquire(g+":x"))
	err := cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(step string) error {
		if step == cells.Steps[1] {
			return cells.ErrKilled
		}
		return nil
	})
	if !errors.Is(err, cells.ErrKilled) {
		t.Fatal(err)
	}
	h.pin("third", g)
	h.isIn("third", g)
	h.renew("third", held)
}

// TestAMoverThatComesBackLateMovesNothing: another command has given up its move, or has finished it and moved the group
// back, while it was stopped after each step.
func TestAMoverThatComesBackLateMovesNothing(t *testing.T) {
	t.Parallel()
	for _, stopped := range cells.Steps[:3] {
		t.Run(stopped, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, "main", "spare")
			g := h.groupOf("main", 0)
			held := h.acquire("main", acquire(g+":x"))
			err := cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(step string) error {
				if step == stopped {
					h.pin("spare", g)
					h.pin("main", g)
					held = h.renew("main", held)
				}
				return nil
			})
			if stopped != cells.Steps[2] && err == nil {
				t.Error("the late command has succeeded")
			}
			h.isIn("main", g)
			h.renew("main", held)
		})
	}
}

// TestAMoveThatWasGivenUpGoesOnNoMore: its command was stopped, and another one keeps the group where it is.
func TestAMoveThatWasGivenUpGoesOnNoMore(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	held := h.acquire("main", acquire(g+":x"))
	err := cells.PinAnd(t.Context(), "", h.cells, []string{g}, "spare", func(step string) error {
		if step == cells.Steps[1] {
			h.pin("main", g)
			h.isIn("main", g)
		}
		return nil
	})
	if err == nil {
		t.Error("the move went on")
	}
	h.isIn("main", g)
	h.renew("main", held)
}

// TestTwoCommandsMoveOneGroup at the same time.
func TestTwoCommandsMoveOneGroup(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare", "third")
	g := h.groupOf("main", 0)
	held := h.acquire("main", acquire(g+":x"))
	for round := range 4 {
		errs := make(chan error, 2)
		for _, to := range []string{[]string{"spare", "main"}[round%2], []string{"third", "spare"}[round/2]} {
			go func() { errs <- cells.Pin(context.WithoutCancel(t.Context()), "", h.cells, []string{g}, to) }()
		}
		for range 2 {
			if err := <-errs; err != nil {
				t.Logf("round %d: %v", round, err)
			}
		}
		h.pin("spare", g)
		h.isIn("spare", g)
		held = h.renew("spare", held)
	}
}

// TestSetsOfOtherGroupsStopAMove, and the groups stay; together they move.
func TestSetsOfOtherGroupsStopAMove(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g, other := h.groupOf("main", 0), h.groupOf("main", 1)
	set := acquire(g + ":x")
	set.Locks = append(set.Locks, lock.Member{Name: other + ":y", Mode: lock.Exclusive})
	both := h.acquire("main", set)
	if err := cells.Pin(t.Context(), "", h.cells, []string{g}, "spare"); err == nil || !strings.Contains(err.Error(), g+":x") {
		t.Errorf("a set would be torn: %v", err)
	}
	h.isIn("main", g)
	both = h.renew("main", both)
	h.pin("spare", g, other)
	h.isIn("spare", g)
	h.isIn("spare", other)
	h.renew("spare", both)
	h.release("spare", both)
}

// TestAPausedCellLetsNothingGo: a lease that its database has lost could be granted again elsewhere.
func TestAPausedCellLetsNothingGo(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	h.acquire("main", acquire(g+":x"))
	conn := pgtest.Connect(t, h.url("main"))
	pgtest.Exec(t, conn, "update paddock.epochs set closed_until = clock_timestamp() + interval '1 hour'")
	if err := cells.Pin(t.Context(), "", h.cells, []string{g}, "spare"); err == nil || !strings.Contains(err.Error(), "paused") {
		t.Errorf("the group left: %v", err)
	}
	h.isIn("main", g)
}

// TestAMoveIsGivenUpIfTheTargetFails while the groups are in neither cell.
func TestAMoveIsGivenUpIfTheTargetFails(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	held := h.acquire("main", acquire(g+":x"))
	conn := pgtest.Connect(t, h.url("spare"))
	pgtest.Exec(t, conn, "alter table paddock.parts add column more text")
	if err := cells.Pin(t.Context(), "", h.cells, []string{g}, "spare"); err == nil || !strings.Contains(err.Error(), "other columns") {
		t.Errorf("a table of another release was filled: %v", err)
	}
	h.isIn("main", g)
	held = h.renew("main", held)
	pgtest.Exec(t, conn, "alter table paddock.parts drop column more")
	h.pin("spare", g)
	h.isIn("spare", g)
	h.renew("spare", held)
}

// TestATargetThatHasForgottenAMoveIsGivenTheGroupAgain by the same command: a standby without the last commits has become
// its primary, so the leases are lost.
func TestATargetThatHasForgottenAMoveIsGivenTheGroupAgain(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	g := h.groupOf("main", 0)
	held := h.acquire("main", acquire(g+":x"))
	h.pin("spare", g)
	conn := pgtest.Connect(t, h.url("spare"))
	pgtest.Exec(t, conn, "begin")
	pgtest.Exec(t, conn, "delete from paddock.placement")
	pgtest.Exec(t, conn, "delete from paddock.records")
	pgtest.Exec(t, conn, "commit")
	if err := store.BeginEpoch(t.Context(), h.url("spare"), "", "a standby became the primary", 0); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "no cell has the group", func() bool { return len(h.owners(g)) == 0 })
	h.pin("spare", g)
	h.isIn("spare", g)
	if _, err := h.in("spare").Acquire(t.Context(), acquire(g+":x")); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("while the lost lease may be active, another client is answered %v", err)
	}
	if _, err := store.OpenEpoch(t.Context(), h.url("spare"), "", "the holder has stopped"); err != nil {
		t.Fatal(err)
	}
	if next := h.acquire("spare", acquire(g+":x")); next.Token <= held.Token {
		t.Errorf("the token %d followed %d", next.Token, held.Token)
	}
}

// TestManyGroupsMoveAtOnce by commands that run at the same time.
func TestManyGroupsMoveAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare")
	var held []lock.Grant
	errs := make(chan error)
	for i := range 6 {
		g := h.groupOf("main", i)
		held = append(held, h.acquire("main", acquire(g+":x")))
	}
	for i := range 6 {
		go func() {
			errs <- cells.Pin(context.WithoutCancel(t.Context()), "", h.cells, []string{strings.TrimSuffix(held[i].Name, ":x")}, "spare")
		}()
	}
	for range 6 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	for _, g := range held {
		h.isIn("spare", strings.TrimSuffix(g.Name, ":x"))
		h.renew("spare", g)
	}
}

// TestDrainAndFill: a cell is emptied and filled again, while clients go on.
func TestDrainAndFill(t *testing.T) {
	t.Parallel()
	h := newHarness(t, "main", "spare", "third")
	grants := make(map[string]lock.Grant)
	for _, cell := range []string{"main", "spare", "third"} {
		for i := range 3 {
			g := h.groupOf(cell, i)
			grants[g] = h.acquire(cell, acquire(g+":x"))
		}
	}
	pinned := h.groupOf("main", 0)
	h.pin("third", pinned)
	check := func(what string) {
		for g, held := range grants {
			owners := h.owners(g)
			if len(owners) != 1 {
				t.Fatalf("%s: the group %s is in %q", what, g, owners)
			}
			h.isIn(owners[0], g)
			grants[g] = h.renew(owners[0], held)
		}
	}
	check("at first")
	if err := cells.Drain(t.Context(), "", h.cells, "spare"); err != nil {
		t.Fatal(err)
	}
	check("drained")
	if n := h.number("spare", "select count(*) from paddock.records"); n != 0 {
		t.Errorf("%d locks are left", n)
	}
	for i := range 20 {
		if owners := h.owners(fmt.Sprintf("new%d", i)); len(owners) != 1 || owners[0] == "spare" {
			t.Errorf("a new group is in %q", owners)
		}
	}
	if err := cells.Fill(t.Context(), "", h.cells, "spare"); err != nil {
		t.Fatal(err)
	}
	check("filled")
	if owners := h.owners(pinned); !slices.Equal(owners, []string{"third"}) {
		t.Errorf("the pinned group is in %q", owners)
	}
	if n := h.number("spare", "select count(*) from paddock.records"); n < 3 {
		t.Errorf("only %d locks have come back", n)
	}
	for _, c := range h.cells {
		if n := h.number(c.Name, "select count(*) from paddock.placement"); n != 1 {
			t.Errorf("%s has %d rows of the placement, want that of the pinned group", c.Name, n)
		}
	}
	if err := cells.Drain(t.Context(), "", h.cells, "third"); err != nil {
		t.Fatal(err)
	}
	check("the other one is drained")
	if err := cells.Unpin(t.Context(), "", h.cells, []string{pinned}); err != nil {
		t.Fatal(err)
	}
	check("unpinned")
	if err := cells.Drain(t.Context(), "", h.cells, "main"); err != nil {
		t.Fatal(err)
	}
	check("one is left")
	if err := cells.Drain(t.Context(), "", h.cells, "spare"); err == nil {
		t.Error("the last cell was drained")
	}
}
