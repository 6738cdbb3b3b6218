package cells

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/store/internal/database"
)

// Steps are the steps of a move, in order.
var Steps = []string{string(copied), string(left), string(carried), string(finished)}

// ErrKilled is returned by PinAnd's function to stop the command as the end of its process does.
var ErrKilled = errKilled

// ErrOther is returned when another command is at work.
var ErrOther = errOther

// PinAnd is Pin that calls a function after each step, whose error stops it.
func PinAnd(ctx context.Context, in schema.Name, all []Cell, groups []string, to string, after func(string) error) error {
	return PinWithin(ctx, in, all, groups, to, database.TurnTimeout, after)
}

// PinWithin is PinAnd, of which each step waits for its turn for that long.
func PinWithin(
	ctx context.Context, in schema.Name, all []Cell, groups []string, to string, turn time.Duration, after func(string) error,
) error {
	d := open(ctx, in, all)
	d.turn, d.after = turn, func(s step) error { return after(string(s)) }
	defer d.close(ctx)
	return d.pin(ctx, groups, to)
}
