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
// and queue the policy does not change. A transaction that has begun, in which more was changed, is committed, too. If the
// error is an ErrUnknownOutcome of package lock, it may have been committed; after any other one the transaction was
// rolled back.
//
// failed, if not nil, is called after an attempt that is followed by another one, before it rests.
//
// A service that is busy may leave no moment without a decision, so it tries for the time turn, and then returns a
// *database.BlockedError. Its first maxAttempts hold up decisions as briefly as those of a Catalog, later ones for as long
// as decisions wait for a row.
func ChangePlacement(
	ctx context.Context, conn *pgx.Conn, in schema.Name, turn time.Duration, check func(*Snapshot) error, queue func(*pgx.Batch), failed func(),
) error {
	begin, undo := database.Begin, "rollback"
	if conn.PgConn().TxStatus() != 'I' {
		begin, undo = "savepoint alone", "rollback to savepoint alone"
	}
	end := time.Now().Add(turn)
	for attempts, patience, most := 0, firstPatience, maxPatience; ; {
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
		if !changed && database.EffectOf(err) != database.Blocked {
			database.Rollback(conn)
			return err
		}
		if attempts++; attempts == maxAttempts {
			most = database.RowTimeout
		}
		patience = min(2*patience, most)
		if _, undone := conn.Exec(ctx, undo); undone != nil {
			return fmt.Errorf("%w: %w", undone, err)
		}
		if failed != nil {
			failed()
		}
		if !database.Rest(ctx, end, restFactor*time.Since(began)) {
			database.Rollback(conn)
			return database.Explain(conn, in, err)
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
