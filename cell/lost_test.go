package cell_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/paddock-lock/paddock/cell"
	"github.com/paddock-lock/paddock/internal/placement"
	"github.com/paddock-lock/paddock/internal/testkit/await"
	"github.com/paddock-lock/paddock/internal/testkit/pgtest"
	"github.com/paddock-lock/paddock/internal/testkit/replica"
	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store"
)

// TestACellThatHasForgottenAMoveIsReminded: a standby without the last commits becomes the primary of the source of a move.
// From then on two databases say that they have the group. One router reaches both, another only the source.
func TestACellThatHasForgottenAMoveIsReminded(t *testing.T) {
	t.Parallel()
	all := databases(t, 2)
	main, spare := replica.Store(t, all[0].URL, store.Options{Cell: "main"}), replica.Store(t, all[1].URL, store.Options{Cell: "spare"})
	both, blind := cell.New("main", "spare"), cell.New("main", "spare")
	both.Set("main", main)
	both.Set("spare", spare)
	blind.Set("main", main)
	group := ""
	for _, g := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		if placement.Home(g, main.Placement().Cells) == "main" {
			group = g
			break
		}
	}
	held := acquireOf(group + ":held")
	first, err := both.Acquire(t.Context(), held)
	if err != nil {
		t.Fatal(err)
	}
	failOver := pgtest.Connect(t, all[0].URL)
	pgtest.Exec(t, failOver, "create table before_the_move as table paddock.records")
	pin := func() {
		t.Helper()
		if err := store.PinGroups(t.Context(), "", all, []string{group}, "spare"); err != nil {
			t.Fatal(err)
		}
	}
	pin()
	pgtest.Exec(t, failOver, "begin")
	pgtest.Exec(t, failOver, "delete from paddock.placement")
	pgtest.Exec(t, failOver, "insert into paddock.records table before_the_move")
	pgtest.Exec(t, failOver, "commit")
	if err := store.BeginEpoch(t.Context(), all[0].URL, "", "a standby became the primary", 0); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "both cells have the group", func() bool {
		return main.Placement().Elsewhere(group) == nil && spare.Placement().Elsewhere(group) == nil
	})

	other := acquireOf(group + ":other")
	if _, err := blind.Acquire(t.Context(), other); !errors.Is(err, lock.ErrUnavailable) || errors.As(err, new(*placement.ElsewhereError)) {
		t.Errorf("while grants are paused, a replica that does not reach the target is answered %v", err)
	}
	granted, err := both.Acquire(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := spare.Lock(t.Context(), group+":other"); err != nil || len(l.Leases) == 0 || l.Token != granted.Token {
		t.Errorf("a replica that reaches both cells was granted the lock elsewhere than in the target: %+v, %v", l, err)
	}

	ctx, stop := context.WithCancel(t.Context())
	reminded := make(chan struct{})
	go func() {
		both.RemindCells(ctx, slog.New(slog.DiscardHandler))
		close(reminded)
	}()
	await.Until(t, "the source says that the group has left", func() bool { return main.Placement().Elsewhere(group) != nil })
	stop()
	<-reminded
	if _, err := store.OpenEpoch(t.Context(), all[0].URL, "", "nothing was lost"); err != nil {
		t.Fatal(err)
	}
	if _, err := main.Acquire(t.Context(), acquireOf(group+":third")); !errors.As(err, new(*placement.ElsewhereError)) {
		t.Errorf("the source is asked for a lock, and answers %v", err)
	}
	if _, err := main.Renew(t.Context(), lock.Renew{Locks: held.Names(), LeaseID: first.ID}); !errors.As(err, new(*placement.ElsewhereError)) {
		t.Errorf("the source is asked to renew a lease, and answers %v", err)
	}
	pin()
	if n := pgtest.Number(t, failOver, "select count(*) from paddock.records"); n != 0 {
		t.Errorf("%d locks are left in the source", n)
	}
	for _, g := range []lock.Grant{first, granted} {
		if _, err := both.Renew(t.Context(), lock.Renew{Locks: []string{g.Leases[0].Name}, LeaseID: g.ID}); err != nil {
			t.Error(err)
		}
	}
}
