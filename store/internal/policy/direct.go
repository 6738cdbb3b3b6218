package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/schema"
	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/epoch"
)

var sqlCount = change("count")

// errNotHere is returned to operators for a server that no epoch is about.
var errNotHere = errors.New("the database was failed over or restored, and no replica has begun its epoch yet; run the command again " +
	"when one has, or see paddock epoch")

// Read returns the policy, on a connection of an operator's command.
func Read(ctx context.Context, conn *pgx.Conn, in schema.Name) (*Snapshot, error) {
	s := &Snapshot{}
	err := s.scan(conn.QueryRow(ctx, sqlPolicy.In(in)))
	return s, err
}

// ChangePlacement changes the placement on a connection of an operator's command, while nothing is decided: it counts the
// change, runs what queue queues, and commits. check looks at the policy first, and its error is returned; between check
// and queue the policy does not change. inside says that a transaction has begun, in which more was changed: it is
// committed, too. If the error is an ErrUnknownOutcome of package lock, it may have been committed; after any other one
// the transaction was rolled back.
func ChangePlacement(
	ctx context.Context, conn *pgx.Conn, in schema.Name, inside bool, check func(*Snapshot) error, queue func(*pgx.Batch),
) error {
	begin, undo := database.Begin, "rollback"
	if inside {
		begin, undo = "savepoint alone", "rollback to savepoint alone"
	}
	for attempts, patience := 0, firstPatience; ; {
		s, e, err := readDirectly(ctx, conn, in)
		if err == nil {
			err = check(s)
		}
		if err != nil {
			database.Rollback(conn)
			return err
		}
		began := time.Now()
		err = exclude(ctx, conn, in, begin, patience, func(b *pgx.Batch) {
			b.Queue(sqlCount.In(in), s.Version.Epoch, s.Version.Changes, e.Started)
			queue(b)
		})
		if err == nil {
			return nil
		}
		refused := new(pgconn.PgError)
		changed := errors.As(err, &refused) && refused.Code == "PD001"
		if !changed {
			attempts, patience = attempts+1, min(2*patience, maxPatience)
		}
		if !changed && database.EffectOf(err) != database.Blocked || attempts == maxAttempts || ctx.Err() != nil {
			database.Rollback(conn)
			return err
		}
		if _, failed := conn.Exec(ctx, undo); failed != nil {
			return fmt.Errorf("%w: %w", failed, err)
		}
		select {
		case <-time.After(restFactor * time.Since(began)):
		case <-ctx.Done(): // found next
		}
	}
}

// readDirectly reads the policy and its epoch, which must be about the server.
func readDirectly(ctx context.Context, conn *pgx.Conn, in schema.Name) (*Snapshot, epoch.Epoch, error) {
	e, err := epoch.Read(ctx, conn, in)
	if err == nil && !e.Here {
		err = errNotHere
	}
	if err != nil {
		return nil, e, err
	}
	s, err := Read(ctx, conn, in)
	return s, e, err
}
