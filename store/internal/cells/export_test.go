package cells

import (
	"context"

	"github.com/paddock-lock/paddock/internal/schema"
)

// Steps are the steps of a move, in order.
var Steps = []string{string(copied), string(left), string(carried), string(finished)}

// ErrKilled is returned by PinAnd's function to stop the command as the end of its process does.
var ErrKilled = errKilled

// PinAnd is Pin that calls a function after each step, whose error stops it.
func PinAnd(ctx context.Context, in schema.Name, all []Cell, groups []string, to string, after func(string) error) error {
	d := open(ctx, in, all)
	d.after = func(s step) error { return after(string(s)) }
	defer d.close(ctx)
	return d.pin(ctx, groups, to)
}
