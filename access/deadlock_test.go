package access

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock"
	"github.com/paddock-lock/paddock/lock"
)

func withPrefix(t *testing.T, prefix string) context.Context {
	return WithKey(t.Context(), Key{Role: Lock, Prefixes: []string{prefix}})
}

// TestAWaitChainHidesWhatTheKeyDoesNotCover: the names and the holders.
func TestAWaitChainHidesWhatTheKeyDoesNotCover(t *testing.T) {
	t.Parallel()
	chain := lock.WaitChain{End: lock.ChainUnknown, Steps: []lock.DeadlockStep{
		{Name: "mine:a", Holder: "me", WaitsFor: "her"}, {Name: "hers:secret", Holder: "she", WaitsFor: "him", Ahead: true},
		{Name: "mine:b", Holder: "me", WaitsFor: "her", At: "hers"},
	}}
	before := slices.Clone(chain.Steps)
	got := hideQueue(withPrefix(t, "mine"), lock.QueueInfo{Name: "mine:a", Chain: &chain}).Chain
	hidden := lock.DeadlockStep{Name: notCovered, Holder: notCovered, WaitsFor: notCovered, Ahead: true}
	there := lock.DeadlockStep{Name: "mine:b", Holder: "me", WaitsFor: notCovered, At: notCovered}
	if !slices.Equal(got.Steps, []lock.DeadlockStep{before[0], hidden, there}) || got.End != lock.ChainUnknown {
		t.Errorf("the chain is %+v", got)
	}
	if !slices.Equal(chain.Steps, before) {
		t.Error("the chain of another caller has changed")
	}
	if none := hideQueue(withPrefix(t, "mine"), lock.QueueInfo{Name: "mine:a"}).Chain; none != nil {
		t.Errorf("there is none, and it is %+v", none)
	}
}

// TestEventsHideWhatTheKeyDoesNotCover of the circle of a deadlock.
func TestEventsHideWhatTheKeyDoesNotCover(t *testing.T) {
	t.Parallel()
	cycle := lock.CycleOf([]lock.DeadlockStep{{Name: "mine:a", Holder: "me", WaitsFor: "her"}, {Name: "hers:secret", Holder: "she", WaitsFor: "me again"}})
	page := paddock.Page[lock.Event]{Items: []lock.Event{{Name: "mine:a", Holder: "me", Cycle: cycle}, {Name: "mine:b"}}, Next: "2"}
	got := hideEvents(withPrefix(t, "mine"), page)
	steps := got.Items[0].Cycle.Steps()
	if len(got.Items) != 2 || got.Next != "2" || len(steps) != 2 || steps[0].Holder != "me" || got.Items[0].Holder != "me" {
		t.Fatalf("the page is %+v", got)
	}
	if hidden := (lock.DeadlockStep{Name: notCovered, Holder: notCovered, WaitsFor: notCovered}); steps[1] != hidden {
		t.Errorf("it shows %+v", steps[1])
	}
	if page.Items[0].Cycle != cycle {
		t.Error("the page of another caller has changed")
	}
	if all := hideEvents(withPrefix(t, "hers"), page).Items[0].Cycle.Steps(); all[0].Name != notCovered || all[1].Holder != "she" {
		t.Errorf("another key is shown %+v", all)
	}
}

// TestADeadlockHidesWhatTheKeyDoesNotCover: the names and the holders, also in the description.
func TestADeadlockHidesWhatTheKeyDoesNotCover(t *testing.T) {
	t.Parallel()
	cycle := []lock.DeadlockStep{
		{Name: "mine:a", Holder: "me", WaitsFor: "her"}, {Name: "hers:secret", Holder: "she", WaitsFor: "me again", Ahead: true},
	}
	ctx := withPrefix(t, "mine")
	e := new(lock.Error)
	if !errors.As(hideCycle(ctx, lock.DeadlockError(cycle)), &e) || e.Code != lock.ErrDeadlock || len(e.Cycle) != 2 {
		t.Fatalf("the error is %v", e)
	}
	hidden := lock.DeadlockStep{Name: notCovered, Holder: notCovered, WaitsFor: notCovered, Ahead: true}
	if e.Cycle[0] != cycle[0] || e.Cycle[1] != hidden {
		t.Errorf("the circle is %+v", e.Cycle)
	}
	if strings.Contains(e.Detail, "secret") || strings.Contains(e.Detail, `"she"`) || !strings.Contains(e.Detail, "mine:a") {
		t.Errorf("it says %s", e.Detail)
	}
	if cycle[1].Name != "hers:secret" {
		t.Error("the error of another caller has changed")
	}
}

// TestTheLockThatBlocksAWaiterIsHidden, with its holders, from a key that does not cover it.
func TestTheLockThatBlocksAWaiterIsHidden(t *testing.T) {
	t.Parallel()
	q := lock.QueueInfo{Name: "mine:a", Waiters: []lock.WaiterInfo{
		{BlockedBy: lock.BlockedByHolders, BlockedAt: "other", Leases: []lock.LeaseInfo{{Name: "other", Holder: "secret"}}},
		{BlockedBy: lock.BlockedByHolders, BlockedAt: "mine", Leases: []lock.LeaseInfo{{Name: "mine", Holder: "shown"}}},
	}}
	got := hideQueue(withPrefix(t, "mine"), q).Waiters
	if w := got[0]; w.BlockedAt != notCovered || w.Leases[0].Name != notCovered || w.Leases[0].Holder != notCovered {
		t.Errorf("shown as %+v", w)
	}
	if w := got[1]; w.BlockedAt != "mine" || w.Leases[0].Holder != "shown" {
		t.Errorf("shown as %+v", w)
	}
}
