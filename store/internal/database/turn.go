package database

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/internal/schema"
)

// TurnTimeout is how long an operator's command waits for its turn: until other transactions have not locked what it needs.
const TurnTimeout = 30 * time.Second

var sqlUsers = Statement(files, "users")

// Rest rests for d, and reports whether another attempt is to follow: neither ctx nor the time has ended.
func Rest(ctx context.Context, end time.Time, d time.Duration) bool {
	select {
	case <-time.After(d):
		return time.Now().Before(end)
	case <-ctx.Done():
		return false
	}
}

// A BlockedError is returned to an operator whose command has waited for its turn in vain. Nothing was changed.
type BlockedError struct {
	Where string   // the database; empty: it is plain
	Users []string // transactions that use the tables, the longest first, as an operator finds them; some at most
	Cause error
}

// Explain returns a *BlockedError if err is the effect Blocked and none yet, and err otherwise. No transaction is open on conn.
func Explain(conn *pgx.Conn, in schema.Name, err error) error {
	if err == nil || EffectOf(err) != Blocked || errors.As(err, new(*BlockedError)) {
		return err
	}
	b := &BlockedError{Cause: err}
	ctx, cancel := context.WithTimeout(context.Background(), TripTimeout)
	defer cancel()
	if rows, failed := conn.Query(ctx, sqlUsers.In(in)); failed == nil {
		b.Users, _ = pgx.CollectRows(rows, pgx.RowTo[string]) // it is told without them
	}
	return b
}

// Error says which transactions the command has waited for, and what to do.
func (b *BlockedError) Error() string {
	const format = "%sother transactions have locked what the command needs, for longer than it waits%s. When they are over, run it again"
	where, users := "", ""
	if b.Where != "" {
		where = b.Where + ": "
	}
	if len(b.Users) > 0 {
		users = ": " + strings.Join(b.Users, ", ")
	}
	return fmt.Sprintf(format, where, users)
}

// Unwrap returns the cause.
func (b *BlockedError) Unwrap() error { return b.Cause }
