package sessions

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/paddock-lock/paddock/lock"
	"github.com/paddock-lock/paddock/store/internal/row"
)

// TestALockThatCannotBeDecidedOnKeepsNoOtherSet: the sets of other sessions are ended all the same.
func TestALockThatCannotBeDecidedOnKeepsNoOtherSet(t *testing.T) {
	t.Parallel()
	var ended []string
	k := &Keeper{submit: func(_ context.Context, commands []lock.Command) ([]*row.Outcome, []error) {
		outcomes, errs := make([]*row.Outcome, len(commands)), make([]error, len(commands))
		for i, c := range commands {
			outcomes[i] = new(row.Outcome)
			switch name := c.Names()[0]; name {
			case "busy":
				errs[i] = lock.ErrUnavailable
			case "a", "b":
				outcomes[i].FollowUp = lock.EndSession{Name: "rest:of:" + name}
			default:
				ended = append(ended, name)
			}
		}
		return outcomes, errs
	}}
	err := k.endAll(t.Context(), []lock.Command{lock.EndSession{Name: "a"}, lock.EndSession{Name: "busy"}, lock.EndSession{Name: "b"}})
	if !errors.Is(err, lock.ErrUnavailable) || !slices.Equal(ended, []string{"rest:of:a", "rest:of:b"}) {
		t.Errorf("the sets of %q were ended, and the error is %v", ended, err)
	}
}
