package access

import (
	"errors"
	"strings"
	"testing"

	"github.com/paddock-lock/paddock/lock"
)

// TestADeadlockHidesWhatTheKeyDoesNotCover: the names and the holders, also in the description.
func TestADeadlockHidesWhatTheKeyDoesNotCover(t *testing.T) {
	t.Parallel()
	cycle := []lock.DeadlockStep{
		{Name: "mine:a", Holder: "me", WaitsFor: "her"}, {Name: "hers:secret", Holder: "she", WaitsFor: "me again", Ahead: true},
	}
	ctx := WithKey(t.Context(), Key{Role: Lock, Prefixes: []string{"mine"}})
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
