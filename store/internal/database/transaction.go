package database

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paddock-lock/paddock/internal/schema"
)

//go:embed sql/*.sql
var files embed.FS

// Statement returns the statement of the file sql/NAME.sql. It panics if there is none: the files are part of the
// binary.
func Statement(files embed.FS, name string) *schema.Statement {
	text := Text(files, name)
	return schema.NewStatement(func() string { return text })
}

// Text returns the text of the file sql/NAME.sql. It panics like Statement.
func Text(files embed.FS, name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(fmt.Sprintf("database: %v", err))
	}
	return string(text)
}

var (
	sqlSettings      = Text(files, "settings")
	sqlRelax         = Text(files, "relax")
	sqlNoJIT         = Text(files, "no_jit")
	sqlSchemaVersion = Statement(files, "schema_version")
)

// Begin starts a transaction. It does not leave the isolation to the database's default: under a stricter one, rows
// that a batch waited for would fail it.
const Begin = "begin isolation level read committed"

const (
	// TripTimeout is the timeout of a round trip that commits nothing.
	TripTimeout = 5 * time.Second * Slowness
	// RowTimeout is how long a statement waits for a row that another session has locked.
	RowTimeout = 250 * time.Millisecond
)

// QueueSettings queues the settings that a decision needs, for this transaction only. patience is how long it waits
// for a locked row.
func QueueSettings(b *pgx.Batch, patience time.Duration) {
	b.Queue(sqlSettings, milliseconds(patience), true)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// QueueRelax queues the setting with which the commit of the transaction does not wait for the disk: for data that
// may be lost in a crash.
func QueueRelax(b *pgx.Batch) { b.Queue(sqlRelax) }

// QueueNoJIT queues the setting with which PostgreSQL compiles no statement of the transaction: for a statement of
// which the planner expects so much more work than there is that compiling it takes longer than running it.
func QueueNoJIT(b *pgx.Batch) { b.Queue(sqlNoJIT) }

// Rollback ends a transaction that has failed. It closes the connection if that fails, too.
func Rollback(conn *pgx.Conn) {
	if conn.IsClosed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), TripTimeout)
	defer cancel()
	if _, err := conn.Exec(ctx, "rollback"); err != nil {
		conn.Close(ctx) //nolint:errcheck // it is given up
	}
}

// unconfirmedKey marks a connection on which a commit may be on no standby.
const unconfirmedKey = "paddock.unconfirmed"

// noteUnconfirmed marks the connection if PostgreSQL reports that a commit stopped waiting for its standbys. That is
// a success with a warning. The text of the warning is in the server's language, so every warning of its class counts.
func noteUnconfirmed(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == "01000" {
		conn.CustomData()[unconfirmedKey] = true
	}
}

// ErrUnconfirmed is returned for a commit that may be on the primary only.
var ErrUnconfirmed = errors.New("the wait for the standby to confirm the commit was cancelled")

// CommitBatch runs the batch, which commits, and returns ErrUnconfirmed if the commit may be on the primary only.
func CommitBatch(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	marks := conn.PgConn().CustomData()
	delete(marks, unconfirmedKey) // of an earlier commit
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		return err
	}
	if _, marked := marks[unconfirmedKey]; marked {
		return ErrUnconfirmed
	}
	return nil
}
