package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paddock-lock/paddock/migrations"
)

// Settings of connections, where the URL gives none.
const (
	usualConns     = 16 // pool_max_conns
	connectTimeout = 5 * time.Second
)

func openPool(ctx context.Context, databaseURL string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("the database URL: %w", err)
	}
	if !strings.Contains(databaseURL, "pool_max_conns") {
		config.MaxConns = usualConns
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "paddock"
	}
	config.ConnConfig.OnNotice = noteUnconfirmed
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("the database does not answer: %w", err)
	}
	return pool, nil
}

// unconfirmedKey marks a connection on which a commit may have no standby's word.
const unconfirmedKey = "paddock.unconfirmed"

// noteUnconfirmed hears PostgreSQL say that a commit stopped waiting for its
// standbys: it calls that a success with a warning. The text of the warning is in
// the server's language, so every warning of its kind counts.
func noteUnconfirmed(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == "01000" {
		conn.CustomData()[unconfirmedKey] = true
	}
}

// errUnconfirmed says that a commit may be on the primary only.
var errUnconfirmed = errors.New("the wait for a standby to confirm the commit was cancelled")

// forget begins the listening for warnings anew, ahead of a commit.
func forget(conn *pgx.Conn) { delete(conn.PgConn().CustomData(), unconfirmedKey) }

// confirmed returns errUnconfirmed if there was a warning since forget.
func confirmed(conn *pgx.Conn) error {
	if _, marked := conn.PgConn().CustomData()[unconfirmedKey]; marked {
		return errUnconfirmed
	}
	return nil
}

// Ready returns nil if the database answers and its schema is the one that this
// binary works with.
func (s *Store) Ready(ctx context.Context) error {
	var version int64
	var dirty bool
	if err := s.pool.QueryRow(ctx, sqlSchemaVersion).Scan(&version, &dirty); err != nil {
		return fmt.Errorf("the schema's version: %w", err)
	}
	if dirty || version < int64(migrations.Latest()) {
		return fmt.Errorf("the schema is at version %d (dirty: %t), this binary needs %d: run paddock migrate up",
			version, dirty, migrations.Latest())
	}
	return nil
}
