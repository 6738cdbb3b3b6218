package cells

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paddock-lock/paddock/store/internal/database"
	"github.com/paddock-lock/paddock/store/internal/policy"
)

var (
	sqlPatience = database.Statement(files, "patience")
	errOther    = errors.New("another paddock cell command is at work there; run this one again when it is over")
)

const (
	// idleTimeout is how long the transaction of a command that stops keeps what it has locked.
	idleTimeout = 60 * time.Second
	// restFactor is how many times as long as an attempt to lock sessions none is made after it.
	restFactor = 10
	// advisoryKey is the advisory lock of alone: "cells" in ASCII.
	advisoryKey int64 = 0x63656c6c73
)

// alone begins a transaction beside which no other command changes the placement of the database: two that have both
// written to paddock.records could not exclude decisions.
func (m *move) alone(ctx context.Context, conn *pgx.Conn) error {
	err := m.begin(ctx, conn, "read committed")
	if err == nil {
		_, err = conn.Exec(ctx, "select pg_advisory_xact_lock($1)", m.in.Key(advisoryKey))
	}
	if err != nil {
		database.Rollback(conn)
	}
	if database.EffectOf(err) == database.Blocked {
		return fmt.Errorf("%s: %w", m.nameOf(conn), errOther)
	}
	return err
}

// change is policy.ChangePlacement alone.
func (m *move) change(ctx context.Context, conn *pgx.Conn, check func(*policy.Snapshot) error, queue func(*pgx.Batch)) error {
	err := m.alone(ctx, conn)
	if err == nil {
		err = policy.ChangePlacement(ctx, conn, m.in, m.turn, check, queue, nil)
	}
	return m.explain(conn, err)
}

// explain returns err, and says which transactions of which cell are the reason if others are. None is open on conn.
func (m *move) explain(conn *pgx.Conn, err error) error {
	var blocked *database.BlockedError
	if err = database.Explain(conn, m.in, err); errors.As(err, &blocked) && blocked.Where == "" {
		blocked.Where = m.nameOf(conn)
	}
	return err
}

// nameOf returns how operators are told of the cell of the connection.
func (m *move) nameOf(conn *pgx.Conn) string {
	if conn == m.target {
		return "the cell " + m.to.Name
	}
	return "the cell " + m.from.Name
}

// again attempts what locks sessions until other transactions have locked none of them. Each attempt is short, since
// heartbeats wait for it.
func (m *move) again(ctx context.Context, conn *pgx.Conn, attempt func() error) error {
	for end := time.Now().Add(m.turn); ; {
		err := attempt()
		if err == nil || database.EffectOf(err) != database.Blocked || !database.Rest(ctx, end, restFactor*database.RowTimeout) {
			return m.explain(conn, err)
		}
	}
}

// exec runs a statement, which waits for locked rows for so long.
func (m *move) exec(ctx context.Context, conn *pgx.Conn, patience time.Duration, sql string, args ...any) error {
	b := &pgx.Batch{}
	b.Queue(sqlPatience.In(m.in), strconv.FormatInt(patience.Milliseconds(), 10))
	b.Queue(sql, args...)
	return conn.SendBatch(ctx, b).Close()
}

// reconnect opens those of the connections again that are closed.
func (m *move) reconnect(ctx context.Context) (err error) {
	for _, c := range []struct {
		conn **pgx.Conn
		of   Cell
	}{{&m.source, m.from}, {&m.target, m.to}} {
		if *c.conn != nil && !(*c.conn).IsClosed() {
			continue
		}
		if *c.conn, err = database.Dial(ctx, c.of.URL); err != nil {
			return fmt.Errorf("the cell %s: %w", c.of.Name, err)
		}
	}
	return nil
}

// begin begins a transaction that ends if this process stops for long, and waits for its turn as long as a command does.
func (m *move) begin(ctx context.Context, conn *pgx.Conn, isolation string) error {
	_, err := conn.Exec(ctx, fmt.Sprintf("begin isolation level %s; set local idle_in_transaction_session_timeout = %d; set local lock_timeout = %d",
		isolation, idleTimeout.Milliseconds(), m.turn.Milliseconds()))
	return err
}
