package store

import (
	"context"
	"time"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

// An Epoch is a stretch of the history of the locks on one database server, as operators see it.
type Epoch = epoch.Info

// MaxAbove is the greatest token that an epoch can continue above: beyond it there is no room below lock.MaxToken.
const MaxAbove = epoch.MaxAbove

// ErrNoStandby is returned by RequireQuorum for a server that waits for no standby.
var ErrNoStandby = database.ErrNoStandby

// Epochs returns all epochs, oldest first, and the database's clock. As in Options an empty schema is paddock.
func Epochs(ctx context.Context, databaseURL, in string) (all []Epoch, now time.Time, err error) {
	name, err := schema.Parse(in)
	if err != nil {
		return nil, now, err
	}
	return epoch.List(ctx, databaseURL, name)
}

// BeginEpoch starts an epoch although nothing shows that the database changed: an operator has put it back to an
// earlier state while no replica ran. Tokens continue far above the one given, at most MaxAbove, and above all that
// the database knows. Nothing is granted for as long as the longest lease that was granted before, even where a quorum
// is required.
func BeginEpoch(ctx context.Context, databaseURL, in, reason string, above int64) error {
	name, err := schema.Parse(in)
	if err != nil {
		return err
	}
	return epoch.Begin(ctx, databaseURL, name, reason, above)
}

// OpenEpoch ends the pause of grants of the newest epoch: an operator knows that no lease was lost, or that no holder
// is alive. It returns false if grants are not paused.
func OpenEpoch(ctx context.Context, databaseURL, in, reason string) (opened bool, err error) {
	name, err := schema.Parse(in)
	if err != nil {
		return false, err
	}
	return epoch.Open(ctx, databaseURL, name, reason)
}

// RequireQuorum sets whether every replica decides only while the server waits for standbys. Then a fail-over to one
// of them loses nothing, and grants are not paused after it. It fails with ErrNoStandby if there is none to wait for.
func RequireQuorum(ctx context.Context, databaseURL, in string, required bool) error {
	name, err := schema.Parse(in)
	if err != nil {
		return err
	}
	return epoch.RequireQuorum(ctx, databaseURL, name, required)
}
